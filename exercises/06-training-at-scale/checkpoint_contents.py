"""List a checkpoint's tensors, slices and files, read a tensor as the learner plans it, and imitate saves that were cut off.

The lists are read from `.metadata` alone, with torch's own reader.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import checkpoints
import torch
import torch.distributed as dist
from bench import limit_time
from ranks import World
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

KEYS = ("model", "optimizer", "step", "generator")
SHOWN_BYTES, DISK_BYTES, LIMIT_S = 4096, 256 << 20, 5.0  # the last one for a call of plan_reads


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


def read_as_planned(
    contents: Metadata, folder: Path, tensor: str, worlds: Sequence[int]
) -> tuple[list[dict[str, Any]], str | None]:
    """Read one tensor's rows for each rank of these worlds, as the learner's plan_reads says. Return a row for each rank.

    Also return "right", or what is wrong, or None if the tensor was not saved.
    """
    import my_checkpoint

    item, slices, stored = contents.state_dict_metadata.get(tensor), [], {}
    if not isinstance(item, TensorStorageMetadata):
        return [], None
    whole = torch.empty(item.size, dtype=item.properties.dtype)
    sizes = {tuple(chunk.offsets): tuple(chunk.sizes) for chunk in item.chunks}
    for index, place in contents.storage_data.items():
        if index.fqn == tensor:
            offset = tuple(index.offset or (0,) * len(item.size))
            with (folder / place.relative_path).open("rb") as file:
                file.seek(place.offset)
                stored[place.relative_path] = torch.load(io.BytesIO(file.read(place.length)), weights_only=True)
            slices.append({"file": place.relative_path, "offset": offset, "size": sizes[offset]})
            _cut(whole, offset, sizes[offset]).copy_(stored[place.relative_path])
    rows: list[dict[str, Any]] = []
    wrong: list[str] = []
    for ranks in dict.fromkeys(worlds):
        height = -(-item.size[0] // ranks)  # as FSDP cuts
        for rank in range(ranks):
            first, after = min(rank * height, item.size[0]), min((rank + 1) * height, item.size[0])
            piece = {"offset": (first, *(0 for _ in item.size[1:])), "size": (after - first, *item.size[1:])}
            result, read_count = torch.full(piece["size"], math.nan, dtype=whole.dtype), 0
            try:
                with limit_time(LIMIT_S):
                    reads = list(my_checkpoint.plan_reads([dict(each) for each in slices], dict(piece)))
                for read in reads:
                    _cut(result, read["to"], read["size"]).copy_(_cut(stored[read["file"]], read["from"], read["size"]))
                    read_count += math.prod(read["size"])
            except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
                traceback.print_exc(file=sys.stdout)
                return rows, f"{type(error).__name__} for rank {rank} of {ranks}: {(str(error).splitlines() or [''])[0][:150]}"
            is_right = result.equal(whole[first:after]) and read_count == result.numel()
            row = {"ranks": ranks, "rank": rank, "rows": f"{first} to {after - 1}", "numbers": read_count}
            rows.append(row | {"files": len({read["file"] for read in reads}), "right": "yes" if is_right else "no"})
            wrong += [] if is_right else [f"rank {rank} of {ranks} does not get rows {first} to {after - 1}, each number once"]
    return rows, wrong[0] if wrong else "right"


def _cut(tensor: torch.Tensor, offset: Sequence[int], size: Sequence[int]) -> torch.Tensor:
    return tensor[tuple(slice(begin, begin + length) for begin, length in zip(offset, size, strict=True))]


def list_files(contents: Metadata, folder: Path) -> list[dict[str, Any]]:
    """Return the files of a checkpoint, each with its number of slices and its bytes on disk."""
    slices: dict[str, int] = {}
    for place in contents.storage_data.values():
        slices[place.relative_path] = slices.get(place.relative_path, 0) + 1
    rows = [{"file": name, "slices": count, "bytes": (folder / name).stat().st_size} for name, count in sorted(slices.items())]
    return [*rows, {"file": checkpoints.METADATA, "slices": None, "bytes": (folder / checkpoints.METADATA).stat().st_size}]


def damage(root: Path, folder: Path, step: int) -> list[Path]:
    """Create and return two newer folders that are not whole checkpoints: a save that was cut off, and a copy of `folder`
    that was cut off."""
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
