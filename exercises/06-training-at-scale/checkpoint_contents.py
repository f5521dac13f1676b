"""List a checkpoint's tensors, slices and files, and imitate saves and copies that were cut off.

Only `.metadata` is read, with torch's own reader: no tensor is loaded.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from pathlib import Path
from typing import Any

import checkpoints
import torch.distributed as dist
from ranks import World
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

KEYS = ("model", "optimizer", "step", "generator")
SHOWN_BYTES, DISK_BYTES = 4096, 256 << 20


def list_missing(contents: Metadata) -> list[str]:
    """Return which of the four parts of a training run are missing in a checkpoint."""
    names = list(contents.state_dict_metadata)
    return [key for key in KEYS if not any(name == key or name.startswith(f"{key}.") for name in names)]


def sum_tensor_bytes(contents: Metadata) -> int:
    """Return the bytes of the numbers in all tensors, excluding what the files add for each slice."""
    tensors = [item for item in contents.state_dict_metadata.values() if isinstance(item, TensorStorageMetadata)]
    return sum(math.prod(tensor.size) * tensor.properties.dtype.itemsize for tensor in tensors)


def list_slices(contents: Metadata, tensor: str) -> list[dict[str, Any]]:
    """Return the slices of one tensor in order: rows, file, first byte and number of bytes. Return [] if it was not saved."""
    item = contents.state_dict_metadata.get(tensor)
    if not isinstance(item, TensorStorageMetadata):
        return []
    sizes = {tuple(chunk.offsets): chunk.sizes for chunk in item.chunks}
    rows = []
    for index, place in contents.storage_data.items():
        if index.fqn == tensor and index.offset is not None:
            begin, height = index.offset[0], sizes[tuple(index.offset)][0]
            location = {"rows": f"{begin} to {begin + height - 1}", "file": place.relative_path}
            rows.append({"tensor": "", "first": begin, **location, "begins": place.offset, "bytes": place.length})
    return sorted(rows, key=lambda row: row["first"])


def list_files(contents: Metadata, folder: Path) -> list[dict[str, Any]]:
    """Return the files of a checkpoint, each with its number of slices and its bytes on disk."""
    slices: dict[str, int] = {}
    for place in contents.storage_data.values():
        slices[place.relative_path] = slices.get(place.relative_path, 0) + 1
    rows = [{"file": name, "slices": count, "bytes": (folder / name).stat().st_size} for name, count in sorted(slices.items())]
    return [*rows, {"file": checkpoints.METADATA, "slices": None, "bytes": (folder / checkpoints.METADATA).stat().st_size}]


def damage(root: Path, folder: Path, step: int) -> list[Path]:
    """Create two newer folders that are not whole checkpoints: a save that was cut off, and a copy of `folder` that was cut
    off."""
    save, copy = checkpoints.choose_folder(root, step), checkpoints.choose_folder(root, step + 1)
    for target in (save, copy):
        target.mkdir()
    for path in sorted(folder.iterdir()):
        if path.name == checkpoints.METADATA:
            shutil.copyfile(path, copy / path.name)  # rsync copies files by name, and this one comes first
        else:
            with path.open("rb") as whole:
                part = whole.read(SHOWN_BYTES)
            (save / path.name).write_bytes(part)
            (copy / path.name).write_bytes(part)
    return [save, copy]


def measure_disk(world: World, root: Path, size: int) -> float | None:
    """Return the GB/s at which all ranks together write and flush plain files of `size` bytes, at most 256 MiB each.

    The faster of two rounds counts. Return None if there is nothing to write.
    """
    if not size:
        return None
    data, path, seconds = os.urandom(min(size, DISK_BYTES)), root / f"plain-{dist.get_rank()}", []
    for _ in range(2):
        world.wait_for_all()
        start = time.perf_counter()
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        seconds.append(time.perf_counter() - start)
        path.unlink()
    return world.size * len(data) / min(world.slowest(seconds)) / 1e9
