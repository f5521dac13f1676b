"""Faults of container images are found in the line of their cause."""

from __future__ import annotations

from tests.unit.exercises.scripts import beside_the_script

images = beside_the_script("07-hpc-systems", "images")


def test_find_faults_of_images_by_line() -> None:
    text = "FROM nvidia/cuda:12.9.0-base\nRUN apt-get update \\\n  && pip install torch\nARG API_KEY=1\nADD w.bin /w\nUSER 0\n"
    assert {(fault.word, fault.line) for fault in images.find_faults(text, "570.86")} == {
        ("cuda", 1), ("torch", 2), ("secret", 4), ("data", 5), ("root", 6),
    }  # fmt: skip
    assert [fault.word for fault in images.find_faults("FROM a@sha256:1\nUSER me\n", "550.1")] == []
    assert [fault.word for fault in images.find_faults("", "550.1")] == ["no-base", "root"]
