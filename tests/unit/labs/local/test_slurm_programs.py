"""Which Slurm simulated machines get, and what somebody is told who has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.local.lab import choose
from gpucourse.labs.local.slurm_programs import Computer
from gpucourse.local.machines import packages, requirements
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Note
from gpucourse.units import now_utc
from gpucourse.workspace.locate import open_workspace

LACKING = ["munge", "slurmctld", "slurmd"]
INSTALL = "sudo apt-get install --no-install-recommends munge slurmctld slurmd"


def require(*, slurm: bool, cable: str = "", layer: Path | None = None) -> None:
    """What a computer without Slurm answers."""
    if slurm and layer is None:
        raise requirements.Lacking("not installed here: munged", INSTALL)


# A Debian without Slurm, where namespaces are allowed.
DEBIAN = Computer(require=require, unpackable=lambda: LACKING, can_unpack=lambda _environ: True)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    workspace, environ = open_workspace(tmp_path / "workspace"), {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    return Context(workspace=workspace, folders=find_course({}), environ=environ)


def deployment() -> LocalDeployment:
    return LocalDeployment(
        stack="02-local", uid="uid", module="2", title="t", template="simulated", phase="creating",
        created=now_utc(), updated=now_utc(), nodes_wanted=3,
    )  # fmt: skip


def mark_unpacked(context: Context) -> Path:
    """As if it had been asked for once."""
    folder = packages.cache_folder(context.environ) / "22.05.8"
    folder.mkdir(parents=True)
    (folder / "packages.txt").touch()
    return folder


def test_without_slurm_both_ways_are_told(context: Context) -> None:
    with pytest.raises(MissingError, match="munged") as caught:
        choose(context, deployment(), "slurm", None, computer=DEBIAN)
    assert caught.value.hint == f"{INSTALL}; or, without root's rights: gpucourse deploy 2 --unpack-slurm"


def test_without_apt_only_the_one_way_is_told(context: Context) -> None:
    other = replace(DEBIAN, can_unpack=lambda _environ: False)
    with pytest.raises(MissingError) as caught:
        choose(context, deployment(), "slurm", None, computer=other)
    assert caught.value.hint == INSTALL


def test_it_is_asked_for_once_and_found_from_then_on(context: Context) -> None:
    asked: list[list[str]] = []

    def unpack(_environ: object, wanted: list[str], _watch: object) -> Path:
        asked.append(wanted)
        return mark_unpacked(context)

    other = replace(DEBIAN, unpack=unpack)
    first, second = deployment(), deployment()
    choose(context, first, "slurm", None, unpack=True, computer=other)
    choose(context, second, "slurm", None, computer=other)
    assert asked == [LACKING]
    folder = str(packages.cache_folder(context.environ) / "22.05.8")
    assert first.variables.layer == second.variables.layer == folder


def test_where_slurm_is_installed_that_one_is_taken(context: Context) -> None:
    mark_unpacked(context)
    heard: list[object] = []
    context.watch = heard.append
    lab = deployment()
    lab.variables.layer = "/what/it/stood/on"
    other = Computer(require=lambda **_wanted: None, unpackable=list)
    choose(context, lab, "slurm", None, unpack=True, computer=other)
    assert lab.variables.layer == ""
    assert [event.text for event in heard if isinstance(event, Note)] == [
        "Slurm is installed here: --unpack-slurm has nothing to do"
    ]


def test_a_lab_without_slurm_unpacks_none(context: Context) -> None:
    with pytest.raises(UsageError, match="has no Slurm"):
        choose(context, deployment(), None, None, unpack=True)
