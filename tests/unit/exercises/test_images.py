"""Faults of container images are found in the line of their cause."""

from __future__ import annotations

import pytest

from tests.unit.exercises.scripts import beside_the_script

images = beside_the_script("07-hpc-systems", "images")


def test_find_faults_of_images_by_line() -> None:
    text = "FROM nvidia/cuda:13.2.0-base\nRUN apt-get update \\\n  && pip install torch\nARG API_KEY=1\nADD w.bin /w\nUSER 0\n"
    assert {(fault.word, fault.line) for fault in images.find_faults(text, "570.86")} == {
        ("cuda", 1), ("torch", 2), ("secret", 4), ("data", 5), ("root", 6),
    }  # fmt: skip
    assert [fault.word for fault in images.find_faults("FROM a@sha256:1\nUSER me\n", "550.1")] == []
    assert [fault.word for fault in images.find_faults("", "550.1")] == ["no-base", "root"]


def test_find_faults_only_of_a_newer_major_version_of_cuda() -> None:
    for image, driver, words in (("12.9.1", "570.172", []), ("13.2.0", "580.126", []), ("13.0.1", "570.172", ["cuda"])):
        faults = images.find_faults(f"FROM nvidia/cuda:{image}-base-ubuntu24.04\nRUN useradd me\nUSER me\n", driver)
        assert [fault.word for fault in faults] == words


@pytest.mark.parametrize(
    ("package", "driver", "words"),
    [
        ("torch==2.10.0", "570.172", []),
        ("torch==2.11.0", "570.172", ["torch-cuda"]),
        ("'torch~=2.13.0'", "570.172", ["torch-cuda"]),
        ("torch==2.13.0", "580.126", []),
        ("torch==2.13.0 --index-url https://download.pytorch.org/whl/cu126", "570.172", []),
        ("torch==2.9.0+cu130", "570.172", ["torch-cuda"]),
        ("torch==2.13.0+cpu", "570.172", []),
        ("'torch<2.11'", "570.172", []),
    ],
)
def test_find_faults_of_a_torch_with_a_newer_cuda_than_the_drivers(package: str, driver: str, words: list[str]) -> None:
    dockerfile = f"FROM python:3.12\nRUN useradd me && pip install {package} numpy\nUSER me\n"
    definition = f"Bootstrap: docker\nFrom: python:3.12\n%post\n    pip install {package} numpy\n"
    for text in (dockerfile, definition):
        assert [fault.word for fault in images.find_faults(text, driver)] == words
