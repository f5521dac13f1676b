"""The choice for a lab with Slurm on a computer that refuses namespaces."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.local.lab import choose
from gpucourse.labs.local.requirements import Computer
from gpucourse.local.machines import requirements
from gpucourse.model.deployment import LocalDeployment

REMEDY = "sudo sysctl -w user.max_net_namespaces=10000"


def require(*, slurm: bool, cable: str = "", layer: Path | None = None) -> None:
    """Require Slurm on a computer without namespaces."""
    raise requirements.NoNamespaces("no namespaces", REMEDY)


# It has Slurm, and refuses namespaces.
STRICT = Computer(require=require, unpackable=list, slurm_missing=set, has_account=lambda: True)


def test_fall_back_puts_daemons_on_this_computer_and_says_what_is_missing(
    context: Context, deployment: LocalDeployment
) -> None:
    choose(context, deployment, "slurm", None, computer=STRICT)
    assert deployment.variables.one_host
    assert deployment.shared == str(context.paths.stack("02-local").nodes / "shared")
    assert "hostname" in deployment.lacks
    assert deployment.lacks.endswith(f"{REMEDY}; then gpucourse deploy 2")
    choose(context, deployment, "slurm", None, computer=replace(STRICT, require=lambda **_wanted: None))
    assert not deployment.variables.one_host, "once namespaces are allowed it gets machines"
    assert (deployment.shared, deployment.lacks) == ("/shared", "")


@pytest.mark.parametrize("scheduler", ["slurm", None])
def test_fall_back_refuses_a_link(context: Context, deployment: LocalDeployment, scheduler: str | None) -> None:
    with pytest.raises(MissingError, match="a limited network") as caught:
        choose(context, deployment, scheduler, "1gbit", computer=STRICT)
    assert caught.value.hint == f"{REMEDY}; or: --target aws"


def test_fall_back_refuses_a_slurm_that_is_only_unpacked(context: Context, deployment: LocalDeployment) -> None:
    unpacked = replace(STRICT, slurm_missing=lambda: {"slurmd"})
    with pytest.raises(MissingError, match="no namespaces") as caught:
        choose(context, deployment, "slurm", None, computer=unpacked)
    assert REMEDY in str(caught.value.hint)
    assert "sudo apt-get install" in str(caught.value.hint)


def test_fall_back_refuses_a_user_without_an_account(context: Context, deployment: LocalDeployment) -> None:
    with pytest.raises(MissingError, match=f"user {os.getuid()} has none on this computer") as caught:
        choose(context, deployment, "slurm", None, computer=replace(STRICT, has_account=lambda: False))
    assert f"sudo useradd --uid {os.getuid()} learner, then gpucourse deploy 2" in caught.value.hint
    assert not deployment.variables.one_host
