"""Save and load sharded checkpoints, with a folder for each step and a file for each rank, and find the whole ones.

The folder after 6 steps is `step_000006`. Each rank writes its slices into its own file (`__0_0.distcp`). Rank 0 writes
`.metadata` last, which says where each slice of each tensor is. Needs only torch.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from ranks import World
from torch.distributed.checkpoint.metadata import Metadata

METADATA, SHARED, _WORD = ".metadata", Path("/shared"), ".rank-0"
PATIENCE = timedelta(hours=1)
"""The time that ranks wait for each other's files. Network storage may be slow, but a collective of training must not be."""


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint on disk.

    `seconds`: the time until the checkpoint was whole.
    `blocked_s`: how many of these seconds blocked training.
    """

    folder: Path
    seconds: float
    blocked_s: float
    bytes: int
    files: int
    """The files with slices. `.metadata` is not one of them, but its size is part of `bytes`."""

    @property
    def gb_per_s(self) -> float:
        """Return the GB/s of all ranks together, with GB = 10**9 bytes."""
        return self.bytes / self.seconds / 1e9


def make_group(ranks: list[int] | None = None) -> dist.ProcessGroup:
    """Return a gloo group of these ranks (by default all) that only saves and loads use. Every rank has to call it.

    A save in the background communicates with the other ranks while training does. In training's own group, its messages would
    be mistaken for gradients.
    """
    return dist.new_group(ranks, backend="gloo", timeout=PATIENCE)


def save(state: dict[str, Any], folder: Path, group: dist.ProcessGroup) -> Checkpoint:
    """Write `state` into `folder`, and return when all ranks of `group` have done so. Remove an earlier attempt first."""
    return begin_save(state, folder, group, asynchronous=False)()


def begin_save(
    state: dict[str, Any], folder: Path, group: dist.ProcessGroup, *, asynchronous: bool = True
) -> Callable[[], Checkpoint]:
    """Start to write `state` into `folder`, and return a function that waits for the end. All ranks of `group` call both.

    With `asynchronous`, return as soon as `state` is copied, so that training may change its tensors. Wait for the end before
    the next save, and before the process ends.
    """
    if dist.get_rank(group) == 0:
        remove(folder)
    dist.barrier(group)
    start = time.perf_counter()
    writing: Future[Any] | None = None
    if asynchronous:
        writing = dcp.async_save(state, checkpoint_id=folder, process_group=group)
    else:
        dcp.save(state, checkpoint_id=folder, process_group=group)
    times = [time.perf_counter() - start] * 2

    def note_end(_future: object) -> None:
        times[1] = time.perf_counter() - start

    if writing is not None:
        writing.add_done_callback(note_end)

    def wait() -> Checkpoint:
        if writing is not None:
            writing.result()
        files = [path for path in folder.iterdir() if path.name != METADATA]
        size = sum(path.stat().st_size for path in folder.iterdir())
        return Checkpoint(folder, seconds=times[1], blocked_s=times[0], bytes=size, files=len(files))

    return wait


def load(state: dict[str, Any], folder: Path, group: dist.ProcessGroup) -> None:
    """Replace the content of `state` with that of `folder`: tensors in place, everything else in the dictionary.

    All ranks of `group` call it. There may be more or fewer ranks than when the checkpoint was saved. Each rank reads the
    slices that its tensors need.
    """
    dcp.load(state, checkpoint_id=folder, process_group=group)


def choose_folder(root: Path, step: int) -> Path:
    """Return the checkpoint's folder after that many steps."""
    return root / f"step_{step:06d}"


def read_step(folder: Path) -> int | None:
    """Return the number of steps in the name of a checkpoint's folder, or None for any other name."""
    number = folder.name.removeprefix("step_")
    return int(number) if folder.name.startswith("step_") and number.isdecimal() else None


def list_whole(root: Path) -> list[Path]:
    """Return the folders in `root` that contain a whole checkpoint, in the order of their steps."""
    steps = {folder: read_step(folder) for folder in root.iterdir()} if root.is_dir() else {}
    step_of = {folder: step for folder, step in steps.items() if step is not None and not find_gap(folder)}
    return sorted(step_of, key=lambda folder: step_of[folder])


def find_gap(folder: Path) -> str:
    """Return in words why this checkpoint is not whole, or an empty text if it is whole.

    `.metadata` is written last, so a save that was cut off has none. A copy that was cut off may have it, but its files are not
    whole.
    """
    try:
        metadata = read_metadata(folder)
    except FileNotFoundError:
        return f"it has no {METADATA}"
    except Exception as error:  # noqa: BLE001  # a pickle that was cut off fails in any way
        return f"its {METADATA} cannot be read ({type(error).__name__})"
    ends: dict[str, int] = {}
    for place in metadata.storage_data.values():
        ends[place.relative_path] = max(ends.get(place.relative_path, 0), place.offset + place.length)
    for file, end in sorted(ends.items()):
        size = (folder / file).stat().st_size if (folder / file).is_file() else None
        if size is None:
            return f"{file} is missing"
        if size < end:
            return f"{file} has {size:,} of {end:,} bytes"
    return ""


def read_metadata(folder: Path) -> Metadata:
    """Return the tensors of a checkpoint and the place of each slice. Raises FileNotFoundError without `.metadata`."""
    if not (folder / METADATA).is_file():
        raise FileNotFoundError(folder / METADATA)
    return dcp.FileSystemReader(folder).read_metadata()


def remove(folder: Path) -> None:
    """Remove a checkpoint, whole or not.

    `.metadata`, which makes it whole, is removed first. So a removal that is cut off leaves no checkpoint.
    """
    (folder / METADATA).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def choose_root(world: World, requested: str) -> Path:
    """Return the folder of this run's checkpoints, which is the same for all ranks and in each life of the run.

    The folder is `requested`. If that is empty, it is the nodes' shared storage (/shared). If there is none, it is rank 0's
    current folder, which is enough for several ranks on one computer.

    End every rank with a message if one of them does not see the files that rank 0 writes there.
    """
    own_root = _make_root(Path(requested or (SHARED if SHARED.is_mount() else Path.cwd()))) if world.rank == 0 else None
    root, word, problem = world.gather(own_root)[0]
    world.give_up_together(problem if world.rank == 0 else None)
    world.give_up_together(_check_root(Path(root), word, requested))
    return Path(root)


def _make_root(parent: Path) -> tuple[str, str, str | None]:
    """Return the folder, a new word that rank 0 wrote into it, and the reason if rank 0 could not write.

    Each of two simultaneous runs has its own folder. The folder is named after the run or, under Slurm, after the job, which
    keeps its number when it is restarted.
    """
    run = os.environ.get("GPUCOURSE_RUN_ID") or os.environ.get("SLURM_JOB_ID") or "by-hand"
    root, word = parent.expanduser().resolve() / f"checkpoints-{run}", uuid.uuid4().hex
    try:
        root.mkdir(parents=True, exist_ok=True)
        (root / _WORD).write_text(word, encoding="ascii")
    except OSError as error:
        return str(root), word, f"checkpoints cannot be written to {parent} ({error.strerror}): set folder to another"
    return str(root), word, None


def _check_root(root: Path, word: str, requested: str) -> str | None:
    """Return why this rank cannot use the folder that rank 0 has created, or None if it can."""
    visible_word = (root / _WORD).read_text(encoding="ascii") if (root / _WORD).is_file() else ""
    if visible_word != word:
        folder_words = f"the folder you set, {requested}, is" if requested else "that folder is"
        return (
            f"rank 0 writes checkpoints to {root}, but this node does not see them: {folder_words} not shared by the nodes. "
            "Set folder to one that all of them mount (--set folder=/shared), or take one node with several ranks"
        )
    try:
        probe = root / f".written-by-{dist.get_rank()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return f"this node cannot write to {root} ({error.strerror}): set folder to another"
    return None


def find_filesystem(path: Path) -> str:
    """Return the type of the file system that holds `path`, such as ext4, nfs4 or tmpfs; "unknown" if the system does not
    report it.

    A tmpfs is in memory, so its times say nothing about a disk.
    """
    kind, longest = "unknown", -1
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines():
            _, place, mounted, *_ = line.split(" ")
            place = place.encode().decode("unicode_escape")
            if path.resolve().is_relative_to(place) and len(place) >= longest:
                kind, longest = mounted, len(place)
    return kind


def forget_cache(folder: Path) -> None:
    """Ask the system to drop its cached copies of these files, so that the next load reads the disk. A tmpfs keeps them."""
    if not sys.platform.startswith("linux"):
        return
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def read_from_disk() -> int | None:
    """Return the bytes that were read from disk for this process so far, or None if the system does not count them."""
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("read_bytes:")).split()[1])
    return None
