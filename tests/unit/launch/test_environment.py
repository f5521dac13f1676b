"""The variables of a rank. Typed variables override others, and a passed-on value is in no plan."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch.environment import read_variables
from gpucourse.ui.render import render
from gpucourse.ui.views.plan import launch as view_of_plan
from tests.unit.launch.test_planning import make_plan, node


def test_make_script_variables_sets_every_variable_that_matters() -> None:
    env = make_plan(node(0), node(1)).commands[1].env
    assert env == {
        "GPUCOURSE_MODE": "local",
        "GPUCOURSE_BACKEND": "gloo",
        "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "90",
        "PYTHONUNBUFFERED": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "4",
    }


def test_environment_shares_the_cores_of_one_machine_among_simulated_nodes_only() -> None:
    local = make_plan(node(0), node(1), node(2), node(3), cores=2)
    real = make_plan(node(0, gpus=1, mode="aws"), node(1, gpus=1, mode="aws"), cores=8)
    assert {command.env["OMP_NUM_THREADS"] for command in local.commands} == {"1"}
    assert {command.env["OMP_NUM_THREADS"] for command in real.commands} == {"8"}
    assert {command.env["GPUCOURSE_BACKEND"] for command in real.commands} == {"nccl"}
    assert {command.env["NCCL_SOCKET_IFNAME"] for command in real.commands} == {"lo"}


def test_make_network_variables_has_those_of_nccl_for_nodes_with_gpus_only() -> None:
    sockets = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1"}
    for command in make_plan(node(0, gpus=1), node(1, gpus=1), nccl=sockets).commands:
        assert sockets.items() <= command.env.items()
    for elsewhere in (make_plan(node(0, gpus=1)), make_plan(node(0), nccl=sockets)):
        assert not sockets.keys() & elsewhere.commands[0].env.keys()


def test_read_variables_tells_values_from_names() -> None:
    environ = {"TOKEN": "secret", "EMPTY": ""}
    assert read_variables(["A=1", "B=x=y", "TOKEN", "EMPTY"], environ) == ({"A": "1", "B": "x=y"}, ("TOKEN", "EMPTY"))


def test_environment_prefers_a_typed_variable_and_shows_a_secret_as_a_name() -> None:
    plan = make_plan(node(0), node(1), environment={"OMP_NUM_THREADS": "7", "MINE": "a b"}, handed_on=("TOKEN",))
    assert [command.env["OMP_NUM_THREADS"] for command in plan.commands] == ["7", "7"]
    assert json.loads(json.dumps(asdict(plan), default=str))["handed_on"] == ["TOKEN"]
    output = render(view_of_plan(plan), width=120)
    assert "  MINE='a b'" in output
    assert '  TOKEN="$TOKEN"' in output


def test_read_variables_only_hands_on_bytes_that_are_no_text() -> None:
    with pytest.raises(UsageError, match="--env A: the value is not text in UTF-8"):
        read_variables(["A=\udcff"], {})
    assert read_variables(["A"], {"A": "\udcff"}) == ({}, ("A",))
