"""Where the programs of a simulated Slurm cluster come from: installed here, or packages that were unpacked aside."""

from __future__ import annotations

from pathlib import Path

from gpucourse.context import Context
from gpucourse.local.machines import packages, requirements
from gpucourse.model.event import Note, stage

FLAG = "--unpack-slurm"


def choose_programs(context: Context, *, unpack: bool = False) -> Path | None:
    """The folder of packages to lay over the machines' programs: None where Slurm is installed, or not to be had so.

    With `unpack` they are fetched, once. Raises MissingError, StorageError.
    """
    lacking = requirements.unpackable()
    if lacking and unpack:
        with stage(context.watch, "packages", "fetching Slurm's packages"):
            return packages.unpack(context.environ, lacking, context.watch)
    if unpack:
        context.watch(Note(text=f"Slurm is installed here: {FLAG} has nothing to do"))
    return packages.find_unpacked(context.environ) if lacking else None


def way_without_root(context: Context, again: str) -> str:
    """What to add to the command that installs Slurm, where the command `again` could do without; else nothing."""
    possible = requirements.unpackable() and packages.can_unpack(context.environ)
    return f"; or, without root's rights: {again} {FLAG}" if possible and not packages.find_unpacked(context.environ) else ""
