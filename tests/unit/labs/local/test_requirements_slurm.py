"""The Slurm that simulated machines use, and the message for a learner without one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.local.lab import choose
from gpucourse.labs.local.requirements import Computer
from gpucourse.local.machines import packages, requirements
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note

LACKING = ["munge", "slurmctld", "slurmd"]
INSTALL = "sudo apt-get install --no-install-recommends munge slurmctld slurmd"


def require(*, slurm: bool, cable: str = "", layer: Path | None = None) -> None:
    """Require Slurm on a computer without it."""
    if slurm and layer is None:
        raise requirements.Lacking("not installed here: munged", INSTALL)


# A Debian without Slurm, where namespaces are allowed.
DEBIAN = Computer(require=require, unpackable=lambda: LACKING, can_unpack=lambda _environ: True)


def mark_unpacked(context: Context) -> Path:
    """Mark the packages as unpacked, as an earlier command leaves them."""
    folder = packages.cache_folder(context.environ) / "22.05.8"
    folder.mkdir(parents=True)
    (folder / "packages.txt").touch()
    return folder


@pytest.mark.parametrize(
    ("can_unpack", "hint"),
    [(True, f"{INSTALL}; or, without root privileges: gpucourse deploy 2 --unpack-slurm"), (False, INSTALL)],
)
def test_find_requirements_without_slurm_names_the_ways_to_get_it(
    context: Context, deployment: LocalDeployment, can_unpack: bool, hint: str
) -> None:
    with pytest.raises(MissingError, match="munged") as caught:
        choose(context, deployment, "slurm", None, computer=replace(DEBIAN, can_unpack=lambda _environ: can_unpack))
    assert caught.value.hint == hint


def test_find_requirements_unpacks_slurm_once_and_finds_it_from_then_on(context: Context, deployment: LocalDeployment) -> None:
    requests: list[list[str]] = []

    def unpack(_environ: object, words: list[str], _watch: object) -> Path:
        requests.append(words)
        return mark_unpacked(context)

    computer = replace(DEBIAN, unpack=unpack)
    first, second = deployment, deepcopy(deployment)
    choose(context, first, "slurm", None, unpack=True, computer=computer)
    choose(context, second, "slurm", None, computer=computer)
    assert requests == [LACKING]
    folder = str(packages.cache_folder(context.environ) / "22.05.8")
    assert first.variables.layer == second.variables.layer == folder


def test_find_requirements_takes_a_slurm_that_is_installed(context: Context, deployment: LocalDeployment) -> None:
    mark_unpacked(context)
    heard: list[object] = []
    context = context.watched_by(heard.append)
    deployment.variables.layer = "/what/it/stood/on"
    computer = Computer(require=lambda **_wanted: None, unpackable=list)
    choose(context, deployment, "slurm", None, unpack=True, computer=computer)
    assert deployment.variables.layer == ""
    assert [event.text for event in heard if isinstance(event, Note)] == [
        "Slurm is installed here: --unpack-slurm has nothing to do"
    ]
