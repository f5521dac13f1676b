from __future__ import annotations

from typing import Any

import pytest

from gpucourse.errors import UsageError
from gpucourse.launch import planning as launch
from gpucourse.launch.launcher import LabFacts, LaunchRequest, NodeFacts, find_launcher
from gpucourse.launch.torchrun import read_options
from gpucourse.model.manifest import Exercise
from gpucourse.model.node import Inventory, Node
from gpucourse.model.plan import LaunchPlan


def exercise(**changes: object) -> Exercise:
    fields: dict[str, object] = {
        "id": "3.2", "title": "DDP", "goal": "train", "minutes": 10, "script": "ddp.py", "tasks": ["run it"], "hints": ["look"],
        "launch": {"kind": "torchrun", "nodes": 2, "timeout": "10m", "collective_timeout": "90s"},
    }  # fmt: skip
    return Exercise.model_validate(fields | changes)


def node(index: int, *, gpus: int = 0, mode: str = "local") -> Node:
    return Node(
        name=f"node{index}", role="worker" if index else "head", address=f"203.0.113.{index}", port=22,
        private_address=f"10.0.0.{index}", user="me", gpus=gpus, instance_type="simulated", python="/opt/py/bin/python",
        mode=mode,
    )  # fmt: skip


def make_plan(
    *nodes: Node,
    launcher: str = "torchrun",
    arguments: tuple[str, ...] = (),
    cores: int = 8,
    parameters_chosen: dict[str, object] | None = None,
    nccl: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
    handed_on: tuple[str, ...] = (),
    torchrun: str = "",
    **changes: object,
) -> LaunchPlan:
    request = LaunchRequest(
        exercise=exercise(**changes), launcher=launcher, script="ddp.py", parameters=parameters_chosen or {},
        arguments=arguments, uploads=(), timeout_s=600, nccl=nccl or {}, environment=environment or {}, handed_on=handed_on,
        torchrun_options=read_options(torchrun),
    )  # fmt: skip
    facts = LabFacts(nodes={node.name: NodeFacts(cores=cores, interface="lo") for node in nodes}, port=29501)
    return find_launcher(launcher).plan(request, nodes, facts)


def test_make_plan_has_one_process_a_gpu_and_numbers_ranks_over_all_nodes() -> None:
    plan = make_plan(node(0, gpus=4), node(1, gpus=2))
    assert [command.ranks for command in plan.commands] == [(0, 1, 2, 3), (4, 5)]
    assert plan.world_size == 6
    assert "--nproc-per-node=4" in plan.commands[0].argv
    assert plan.commands[1].env["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize(
    ("names", "count", "nodes"),
    [((1, 0, 2), 2, ["node0", "node1"]), ((0, 1, 2), None, ["node0", "node1"]), ((0,), None, ["node0"])],
    ids=["head first", "as the manifest says", "as many as there are"],
)
def test_choose_nodes_takes_the_head_first_and_no_more_than_asked(
    names: tuple[int, ...], count: int | None, nodes: list[str]
) -> None:
    inventory = Inventory(stack="s", nodes=tuple(map(node, names)))
    assert [item.name for item in launch.choose_nodes(exercise(), inventory, count, "3")] == nodes


def test_choose_nodes_refuses_more_than_deployed_with_the_command_for_more() -> None:
    with pytest.raises(UsageError, match="3 nodes were requested, but only 2 are deployed") as caught:
        launch.choose_nodes(exercise(), Inventory(stack="s", nodes=(node(0), node(1))), 3, "3")
    assert caught.value.hint == "gpucourse deploy 3 --nodes 3"


@pytest.mark.parametrize("count", [0, -1, 65])
def test_choose_nodes_refuses_a_count_out_of_range(count: int) -> None:
    with pytest.raises(UsageError, match=f"not on {count}") as caught:
        launch.choose_nodes(exercise(), Inventory(stack="s", nodes=(node(0),)), count, "3")
    assert caught.value.hint == "gpucourse run 3.2 --nodes 1", "what is deployed"


COUNTED: Any = {
    "launch": {"kind": "torchrun", "procs_per_node": "nproc"},
    "parameters": [{"name": "nproc", "type": "int", "default": 4, "local": 2, "min": 1, "max": 8, "help": "how many"}],
}


@pytest.mark.parametrize(("parameters", "local", "count"), [({"nproc": 3}, True, 3), ({}, True, 2), ({}, False, 4)])
def test_make_plan_has_as_many_processes_on_a_node_as_a_parameter_says(
    parameters: dict[str, object], local: bool, count: int
) -> None:
    only_node = node(0) if local else node(0, gpus=1, mode="aws")
    plan = make_plan(only_node, parameters_chosen=parameters, **COUNTED)
    assert f"--nproc-per-node={count}" in plan.commands[0].argv
    assert plan.commands[0].ranks == tuple(range(count))
