"""Targets through their registry: which one is meant, what each can do, and labs on one that is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs import change
from gpucourse.labs.deploy import choose_target
from gpucourse.labs.destroy import DestroyRequest, destroy, survey
from gpucourse.labs.health import Health
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.status import status
from gpucourse.labs.target import (
    TARGETS,
    Forgettable,
    HasAccount,
    HasClock,
    Searchable,
    find_target,
    list_targets,
    load_targets,
)
from gpucourse.model.deployment import Deployment, HostsDeployment, LocalDeployment
from gpucourse.model.node import Inventory
from gpucourse.units import now_utc
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import context_in, deployment_of, node


class Blind:
    """As much of a target as `status` asks for."""

    def health(self, *_: object, **_more: object) -> Health:
        raise MissingError("it is dark")


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return context_in(tmp_path)[0]


def record(context: Context, kind: type[Deployment], target: str) -> Deployment:
    """The record of a lab of module 3, stored."""
    now = now_utc()
    lab = kind(
        stack=f"03-{target}", uid="u", module="3", target=target, template="t", phase="ready", created=now, updated=now,
        nodes_wanted=1,
    )  # fmt: skip
    deployments.save(context.paths, lab)
    return lab


def test_load_targets_says_what_each_can_do() -> None:
    assert [target.name for target in load_targets()] == list(list_targets()) == list(TARGETS)
    for target in load_targets():
        can = [isinstance(target, ability) for ability in (HasClock, Searchable, HasAccount)]
        assert can == [target.name == "aws"] * 3
        assert isinstance(target, Forgettable) == (target.name == "hosts")
        assert bool(target.no_clock) != can[0]


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (DeployRequest(module="3"), "local"),
        (DeployRequest(module="3", target="aws", gpu=("t4",)), "aws"),
        (DeployRequest(module="3", hosts=("me@gpu1",)), "hosts"),
    ],
)
def test_choose_target_takes_the_one_that_is_meant(context: Context, request_: DeployRequest, name: str) -> None:
    assert choose_target(context, request_).name == name


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (DeployRequest(module="3", gpu=("t4",), spot=False), "--gpu, --spot: only for a lab on AWS"),
        (DeployRequest(module="3", target="aws", link="1gbit"), "--link: only for simulated nodes"),
        (DeployRequest(module="3", target="hosts", unpack_slurm=True), "--unpack-slurm: only for simulated nodes"),
        (DeployRequest(module="3", target="local", hosts=("a",), trust=("SHA256:x",)), "--hosts, --trust: only for machines"),
    ],
)
def test_choose_target_refuses_a_flag_of_another_target(context: Context, request_: DeployRequest, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        choose_target(context, request_)
    assert str(caught.value.hint).startswith("gpucourse deploy 3 --target ")


def test_target_that_is_not_installed_keeps_its_lab(context: Context) -> None:
    record(context, Deployment, "moon")
    [lab] = status(context).stacks
    assert [(node.healthy, node.known, node.detail) for node in lab.nodes] == [(False, False, "there is no target moon here")]
    result = destroy(context, survey(context, DestroyRequest(module="3", target="moon")), discard=False)
    assert [type(error) for error in result.errors] == [MissingError]
    assert deployments.load(context.paths, "03-moon") is not None
    with pytest.raises(MissingError, match="there is no target moon here"):
        find_target("moon")


def test_status_shows_other_labs_when_a_target_cannot_look(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "hosts", f"{__name__}:Blind")  # the registry is what this test is about
    record(context, HostsDeployment, "hosts")
    record(context, LocalDeployment, "local")
    [blind, local] = status(context).stacks
    assert [node.detail for node in blind.nodes] == ["it is dark"]
    assert (local.deployment.stack, [node.node for node in local.nodes]) == ("03-local", ["node0"])


def test_change_says_why_a_lab_has_no_clock(context: Context) -> None:
    with pytest.raises(MissingError, match="module 3 has no lab on AWS") as caught:
        change.stop(context, "3")
    assert caught.value.hint == "gpucourse deploy 3 --target aws"
    record(context, LocalDeployment, "local")
    for verb in (change.stop, change.start, change.allow_ip):
        with pytest.raises(UsageError, match="03-local is not a lab on AWS: simulated nodes cost nothing"):
            verb(context, "3")
    for longer in (change.more_time, change.keep):
        with pytest.raises(UsageError, match="03-local is not a lab on AWS: simulated nodes cost nothing"):
            longer(context, "3", 3600)
    record(context, HostsDeployment, "hosts")
    with pytest.raises(UsageError, match="it neither starts nor ends them"):
        change.stop(context, "3")


@pytest.mark.parametrize(("stopped", "verb"), [(True, "start"), (False, "allow-ip")])
def test_reach_again_names_the_command_and_the_cost(context: Context, stopped: bool, verb: str) -> None:
    lab = deployment_of(stopped=stopped, usd_per_hour="1.54")
    lab.inventory = Inventory(stack=lab.stack, nodes=(node("node0"),))
    meanwhile, mend = find_target("aws").reach_again(context, lab)
    assert meanwhile == "; meanwhile 03-aws-t4 costs about $1.54 an hour"
    assert mend.startswith(f"gpucourse {verb} 3 ")
    here = record(context, LocalDeployment, "local")
    assert find_target("local").reach_again(context, here) == ("", "gpucourse deploy 3 repairs the nodes")
