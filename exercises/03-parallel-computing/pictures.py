"""Labelled pictures of 32x32, generated so that they can be learned, or read from a folder in the format of MNIST.

The idx format (yann.lecun.com/exdb/mnist) has two zero bytes, a byte for the type (8: unsigned bytes), a byte for the number of
dimensions, and each dimension as four bytes, the highest first. Then come the values. Files compressed with gzip are read, too.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import torch

SIDE, CLASSES, CHANNELS = 32, 10, 3
UNSIGNED_BYTES = 8
IMAGES, LABELS = ("train-images-idx3-ubyte", "train-images.idx3-ubyte"), ("train-labels-idx1-ubyte", "train-labels.idx1-ubyte")


class NoPictures(Exception):
    """A folder or file does not have the expected content. The message names it and says what is wrong."""


def generate(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `count` pictures (3 channels) and their labels. Each class has a different soft pattern, shifted at random, with
    noise.

    The pictures are the same on every machine with the same PyTorch and seed. The position of a pattern is random, so its form
    must be learned.
    """
    chance = torch.Generator().manual_seed(seed)
    coarse = torch.randn(CLASSES, CHANNELS, 8, 8, generator=chance)
    patterns = torch.nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    labels = torch.randint(CLASSES, (count,), generator=chance)
    shifts = torch.randint(SIDE, (count, 2), generator=chance)
    rows = (torch.arange(SIDE) + shifts[:, :1]) % SIDE  # of each picture
    columns = (torch.arange(SIDE) + shifts[:, 1:]) % SIDE
    shifted = patterns.permute(0, 2, 3, 1)[labels[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
    return shifted + torch.randn(shifted.shape, generator=chance), labels


def read_folder(folder: str, count: int, at_least: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first `count` pictures of a set such as MNIST: one channel, padded to 32x32, brightness of mean 0 and standard
    deviation 1.

    Raises NoPictures with the reason if the folder contains no such set, or fewer than `at_least` pictures.
    """
    images, labels = read_idx(_first(Path(folder), IMAGES)), read_idx(_first(Path(folder), LABELS))
    if images.dim() != 3 or labels.dim() != 1 or len(images) != len(labels) or not len(images):
        raise NoPictures(f"{folder}: {tuple(images.shape)} images and {tuple(labels.shape)} labels do not belong together")
    if max(images.shape[1:]) > SIDE:
        raise NoPictures(f"{folder}: pictures of {images.shape[1]}x{images.shape[2]} are larger than {SIDE}x{SIDE}")
    if len(images) < at_least:
        raise NoPictures(
            f"{folder}: {len(images):,} pictures are too few, {at_least:,} are needed: take a smaller --batch-size"
        )
    tall, wide = SIDE - images.shape[1], SIDE - images.shape[2]
    frame = (wide // 2, wide - wide // 2, tall // 2, tall - tall // 2)
    pixels = torch.nn.functional.pad(images[:count].float() / 255, frame)
    return ((pixels - pixels.mean()) / pixels.std().clamp(min=1e-6))[:, None], labels[:count].long()


def read_idx(path: Path) -> torch.Tensor:
    """Return the values of an idx file of bytes, in the shape that its header gives. Raises NoPictures if the file is truncated
    or of another kind."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise NoPictures(f"{path}: {error}") from error
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != UNSIGNED_BYTES or not 1 <= data[3] <= 4:
        raise NoPictures(f"{path}: is not an idx file of unsigned bytes (it begins with {data[:4].hex() or 'nothing'})")
    head = 4 + 4 * data[3]
    shape = struct.unpack(f">{data[3]}I", data[4:head]) if len(data) >= head else ()
    if not shape or len(data) - head != math.prod(shape):
        raise NoPictures(
            f"{path}: {len(data):,} bytes are not what its header promises, {'x'.join(map(str, shape)) or 'nothing'}"
        )
    return (
        torch.frombuffer(bytearray(data[head:]), dtype=torch.uint8).reshape(shape) if math.prod(shape) else torch.zeros(shape)
    )


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    candidates = [folder / (name + ending) for name in names for ending in ("", ".gz")]
    path = next((path for path in candidates if path.is_file()), None)
    if path is None:
        raise NoPictures(f"{folder}: has no {names[0]}, compressed with gzip or not")
    return path
