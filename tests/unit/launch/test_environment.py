"""Variables that were typed: they win over what is set otherwise, and a value that is handed on stands in no plan."""

from __future__ import annotations

import json
from dataclasses import asdict

from gpucourse.launch import sbatch
from gpucourse.launch.environment import read_variables
from gpucourse.ui.render import render
from gpucourse.ui.views.plan import launch as view_of_plan
from tests.unit.launch.test_planning import make_plan, node


def test_values_and_names() -> None:
    here = {"TOKEN": "secret", "EMPTY": ""}
    assert read_variables(["A=1", "B=x=y", "TOKEN", "EMPTY"], here) == ({"A": "1", "B": "x=y"}, ("TOKEN", "EMPTY"))


def test_what_was_typed_wins_and_is_shown_and_a_secret_is_a_name() -> None:
    plan = make_plan(node(0), node(1), environment={"OMP_NUM_THREADS": "7", "MINE": "a b"}, handed_on=("TOKEN",))
    assert [command.env["OMP_NUM_THREADS"] for command in plan.commands] == ["7", "7"]
    assert json.loads(json.dumps(asdict(plan), default=str))["handed_on"] == ["TOKEN"]
    shown = render(view_of_plan(plan), width=120)
    assert "  MINE='a b'" in shown
    assert '  TOKEN="$TOKEN"' in shown


def test_a_batch_file_leaves_to_the_learner_what_was_typed() -> None:
    job = sbatch.SbatchJob(title="t", name="n", partition="", nodes=2, time_s=60, command=("python3", "x.py"))
    usual = sbatch.render(job)
    assert "export OMP_NUM_THREADS=" in usual
    assert "GLOO_SOCKET_IFNAME" in usual
    typed = sbatch.SbatchJob(
        title="t", name="n", partition="", nodes=2, time_s=60, command=("python3", "x.py"),
        environment={"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "lo"},
    )  # fmt: skip
    lines = sbatch.render(typed).splitlines()
    assert [line for line in lines if "OMP_NUM_THREADS" in line] == ["export OMP_NUM_THREADS=3"]
    assert [line for line in lines if "GLOO_SOCKET_IFNAME" in line] == ["export GLOO_SOCKET_IFNAME=lo"]
