"""Variables that were typed: they win over what is set otherwise, and a value that is handed on stands in no plan."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import sbatch
from gpucourse.launch.environment import read_variables
from gpucourse.ui.render import render
from gpucourse.ui.views.plan import launch as view_of_plan
from tests.unit.launch.test_planning import make_plan, node
from tests.unit.launch.test_slurm import make_plan as make_slurm_plan
from tests.unit.launch.test_slurm import request


def test_read_variables_tells_values_from_names() -> None:
    here = {"TOKEN": "secret", "EMPTY": ""}
    assert read_variables(["A=1", "B=x=y", "TOKEN", "EMPTY"], here) == ({"A": "1", "B": "x=y"}, ("TOKEN", "EMPTY"))


def test_typed_variable_wins_and_is_shown_and_a_secret_is_a_name() -> None:
    plan = make_plan(node(0), node(1), environment={"OMP_NUM_THREADS": "7", "MINE": "a b"}, handed_on=("TOKEN",))
    assert [command.env["OMP_NUM_THREADS"] for command in plan.commands] == ["7", "7"]
    assert json.loads(json.dumps(asdict(plan), default=str))["handed_on"] == ["TOKEN"]
    shown = render(view_of_plan(plan), width=120)
    assert "  MINE='a b'" in shown
    assert '  TOKEN="$TOKEN"' in shown


def test_batch_file_sets_a_typed_variable_once() -> None:
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


def test_batch_file_sets_no_variable_that_is_handed_on() -> None:
    names = ("OMP_NUM_THREADS", "NCCL_SOCKET_IFNAME", "NCCL_NSOCKS_PERTHREAD")
    wanted = request({"kind": "slurm", "nodes": 2, "procs_per_node": 2}, ())
    wanted = replace(wanted, nccl={"NCCL_NSOCKS_PERTHREAD": "4"})
    for handed_on, count in (((), 3), (names, 0)):
        batch = make_slurm_plan(replace(wanted, handed_on=handed_on), nodes=2, mode="aws", gpus=2).batch
        assert batch is not None
        text = batch.files[0].text
        assert sum(text.count(f"export {name}=") for name in names) == count


def test_bytes_that_are_no_text_can_only_be_handed_on() -> None:
    with pytest.raises(UsageError, match="--env A: the value is not text in UTF-8"):
        read_variables(["A=\udcff"], {})
    assert read_variables(["A"], {"A": "\udcff"}) == ({}, ("A",))
