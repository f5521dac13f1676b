"""Launchers by name, with the traits that manifests, records and screens look up. `launch/launcher.py` plans runs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module

from gpucourse.model.drill import How

LAUNCHERS = {
    "python": "gpucourse.launch.python:Python",
    "torchrun": "gpucourse.launch.torchrun:Torchrun",
    "mpi": "gpucourse.launch.mpi:Mpi",
    "accelerate": "gpucourse.launch.accelerate:Accelerate",
    "slurm": "gpucourse.launch.slurm:Slurm",
    "slurm-pty": "gpucourse.launch.slurm_pty:SlurmPty",
}
"""The class of every launcher, as `module:class`. Manifests, their schema, `--launcher` and its help list these names."""


class LauncherTraits:
    """The traits of a launcher.

    `title`: what it starts, in a few words.
    `one_process`: it starts one process per node, regardless of the number of GPUs.
    `starts_ranks`: its processes are the ranks of one world, whose size is in the plan.
    `starts_once`: its only command runs on the first node and starts the processes of all nodes.
    `can_restart`: it can start all processes again after one has failed.
    `drills`: the faults that can be injected into its runs.
    `packages`: the packages that it needs in the nodes' Python.
    `by_slurm`: it runs on a Slurm cluster, which chooses the nodes.
    `takes_batch_files`: it can run a learner's own file for sbatch.
    `is_terminal`: it opens a terminal for the learner. Only an exercise can use it.
    """

    title = ""
    one_process = False
    starts_ranks = False
    starts_once = False
    can_restart = False
    drills: Collection[How] = ()
    packages: tuple[str, ...] = ()
    by_slurm = False
    takes_batch_files = False
    is_terminal = False


def find_traits(name: str) -> LauncherTraits:
    """Return the traits of a launcher. A record of an older or newer version may name an unknown launcher; the result then has
    no traits.
    """
    if name not in LAUNCHERS:
        return LauncherTraits()
    module, _, kind = LAUNCHERS[name].partition(":")
    launcher: LauncherTraits = getattr(import_module(module), kind)()
    return launcher


def list_launchers(having: Callable[[LauncherTraits], bool]) -> tuple[str, ...]:
    """Return the names of the launchers for which `having` is true."""
    return tuple(name for name in LAUNCHERS if having(find_traits(name)))


def list_choices() -> tuple[str, ...]:
    """Return the launchers that a learner may choose for a run."""
    return list_launchers(lambda traits: not traits.is_terminal)
