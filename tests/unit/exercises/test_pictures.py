"""The pictures of 3.4: generated ones, and a set in MNIST's format, or what is none."""

from __future__ import annotations

import struct
from pathlib import Path
from types import ModuleType

import pytest

from tests.system.exercising import needs_torch, write_mnist
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    return beside_the_script("03-parallel-computing", "pictures")


@pytest.mark.parametrize("packed", [False, True])
def test_pictures_are_framed_and_their_brightness_evened_out(pictures: ModuleType, packed: bool, tmp_path: Path) -> None:
    images, labels = pictures.read_folder(str(write_mnist(tmp_path / "set", 7, packed=packed)), 5)
    assert (tuple(images.shape), labels.tolist()) == ((5, 1, 32, 32), [0, 1, 2, 0, 1])
    assert (images.mean().abs().item(), images.std().item()) == (pytest.approx(0, abs=1e-5), pytest.approx(1, abs=1e-3))
    assert images[1, 0, :2].unique().numel() == 1, "the frame of two pixels is all of one brightness"


def test_generated_pictures_are_the_same_for_a_seed_and_others_for_another(pictures: ModuleType) -> None:
    first, repeat, variant = (pictures.generate(20, seed) for seed in (0, 0, 1))
    assert tuple(first[0].shape) == (20, 3, 32, 32)
    assert all(bool((leftover == twin).all()) for leftover, twin in zip(first, repeat, strict=True))
    assert not bool((first[0] == variant[0]).any())


IMAGES = struct.pack(">HBBIII", 0, 8, 3, 1, 2, 2)
LABELS = struct.pack(">HBBI", 0, 8, 1, 1) + b"\1"


@pytest.mark.parametrize(
    ("images", "labels", "reason"),
    [
        (b"", LABELS, "is not an idx file of unsigned bytes (it begins with nothing)"),
        (b"\x89PNG\r\n", LABELS, "is not an idx file of unsigned bytes (it begins with 89504e47)"),
        (IMAGES[:10], LABELS, "are not what its header promises, nothing"),
        (IMAGES + b"abc", LABELS, "19 bytes are not what its header promises, 1x2x2"),
        (IMAGES + b"abcd", LABELS[:7] + b"\2\0\1", "(1, 2, 2) images and (2,) labels do not belong together"),
        (struct.pack(">HBBIII", 0, 8, 3, 1, 33, 2) + b"a" * 66, LABELS, "pictures of 33x2 are larger than 32x32"),
        (struct.pack(">HBBIII", 0, 8, 3, 0, 2, 2), LABELS[:7] + b"\0", "do not belong together"),
        (IMAGES + b"abcd", LABELS, "1 pictures are too few, 4 are needed: take a smaller --batch-size"),
    ],
)
def test_files_that_hold_something_else_are_named(
    pictures: ModuleType, images: bytes, labels: bytes, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "train-images-idx3-ubyte").write_bytes(images)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(labels)
    with pytest.raises(pictures.NoPictures) as error:
        pictures.read_folder(str(tmp_path), 10, 4)
    assert str(error.value).startswith(str(tmp_path))
    assert reason in str(error.value)


def test_a_broken_archive_is_named(pictures: ModuleType, tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "set", 3, packed=True)
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(pictures.NoPictures, match=r"train-images-idx3-ubyte\.gz"):
        pictures.read_folder(str(folder), 3)
