"""The source of the programs of a simulated Slurm cluster: installed here, or unpacked from packages into a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.local.machines import packages, requirements
from gpucourse.model.event import Note, Watcher, stage

FLAG = "--unpack-slurm"


@dataclass(frozen=True)
class Computer:
    """What this computer has and can do for simulated nodes as separate machines. A test passes one with its own answers."""

    require: Callable[..., None] = requirements.require
    unpackable: Callable[[], list[str]] = requirements.unpackable
    slurm_missing: Callable[[], set[str]] = requirements.slurm_missing
    has_account: Callable[[], bool] = requirements.has_account
    can_unpack: Callable[[Mapping[str, str]], bool] = packages.can_unpack
    unpack: Callable[[Mapping[str, str], list[str], Watcher], Path] = packages.unpack


def choose_programs(context: Context, computer: Computer, *, unpack: bool = False) -> Path | None:
    """Return the folder of packages to lay over the machines' programs: None if Slurm is installed, or not unpacked.

    With `unpack`, they are fetched once. Raises MissingError, StorageError.
    """
    lacking = computer.unpackable()
    if lacking and unpack:
        with stage(context.watch, "packages", "fetching Slurm's packages"):
            return computer.unpack(context.environ, lacking, context.watch)
    if unpack:
        context.watch(Note(text=f"Slurm is installed here: {FLAG} has nothing to do"))
    return packages.find_unpacked(context.environ) if lacking else None


def way_without_root(context: Context, computer: Computer, again: str) -> str:
    """Return what to append to the command that installs Slurm, if the command `again` can work without it; else nothing."""
    possible = computer.unpackable() and computer.can_unpack(context.environ)
    return f"; or, without root's rights: {again} {FLAG}" if possible and not packages.find_unpacked(context.environ) else ""
