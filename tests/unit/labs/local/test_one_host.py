"""What is chosen for a lab with Slurm where namespaces are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import find_course
from gpucourse.errors import MissingError
from gpucourse.labs.local.lab import choose
from gpucourse.local.machines import requirements
from gpucourse.model.deployment import LocalDeployment
from gpucourse.units import now_utc
from gpucourse.workspace.locate import open_workspace

REMEDY = "sudo sysctl -w user.max_net_namespaces=10000"


@pytest.fixture
def context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Context:
    """Somebody who has Slurm, on a computer that refuses namespaces."""

    def require(*, slurm: bool, cable: str = "", layer: Path | None = None) -> None:
        raise requirements.NoNamespaces("no namespaces", REMEDY)

    monkeypatch.setattr(requirements, "require", require)
    monkeypatch.setattr(requirements, "unpackable", list)
    monkeypatch.setattr(requirements, "slurm_missing", set)
    return Context(workspace=open_workspace(tmp_path / "workspace"), folders=find_course({}), environ={})


@pytest.fixture
def deployment() -> LocalDeployment:
    return LocalDeployment(
        stack="02-local", uid="uid", module="2", title="t", template="simulated", phase="creating",
        created=now_utc(), updated=now_utc(), nodes_wanted=3,
    )  # fmt: skip


def test_its_daemons_share_this_computer_and_what_is_missing_is_said(context: Context, deployment: LocalDeployment) -> None:
    choose(context, deployment, "slurm", None)
    assert deployment.variables.one_host
    assert deployment.shared == str(context.paths.stack("02-local").nodes / "shared")
    assert "hostname" in deployment.lacks
    assert deployment.lacks.endswith(f"{REMEDY}; then gpucourse deploy 2")


def test_once_namespaces_are_allowed_it_gets_machines(
    context: Context, deployment: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(context, deployment, "slurm", None)
    monkeypatch.setattr(requirements, "require", lambda **_wanted: None)
    choose(context, deployment, "slurm", None)
    assert not deployment.variables.one_host
    assert (deployment.shared, deployment.lacks) == ("/shared", "")


@pytest.mark.parametrize("scheduler", ["slurm", None])
def test_a_link_needs_machines(context: Context, deployment: LocalDeployment, scheduler: str | None) -> None:
    with pytest.raises(MissingError, match="a link of its own") as caught:
        choose(context, deployment, scheduler, "1gbit")
    assert caught.value.hint == f"{REMEDY}; or: --target aws"


def test_a_slurm_that_is_only_unpacked_needs_machines(
    context: Context, deployment: LocalDeployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requirements, "slurm_missing", lambda: {"slurmd"})
    with pytest.raises(MissingError, match="no namespaces") as caught:
        choose(context, deployment, "slurm", None)
    assert REMEDY in str(caught.value.hint)
    assert "sudo apt-get install" in str(caught.value.hint)
