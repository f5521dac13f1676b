"""Drills change only the orders for the nodes, and are refused if there is nothing to break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.launch import drill
from gpucourse.model.drill import InjectedFault
from gpucourse.model.node import Node
from gpucourse.model.plan import LaunchPlan, NodeCommand


def plan(ranks: int = 2) -> LaunchPlan:
    commands = []
    for number in range(ranks):
        node = Node(
            name=f"node{number}", role="worker", address="127.0.0.1", port=1, private_address="127.0.0.1", user="u", gpus=0,
            instance_type="simulated", python="python", mode="local",
        )  # fmt: skip
        argv = ("python", "-m", "torch.distributed.run", "{rank}", "python", "-u", "train.py", "{rank}")
        commands.append(NodeCommand(node=node, argv=argv, env={"A": "1"}, ranks=(number,)))
    return LaunchPlan(
        run_id="otter", exercise="3.2", launcher="torchrun", mode="local", script="train.py", parameters={},
        commands=tuple(commands), uploads=(), master_address="127.0.0.1", master_port=29500, timeout_s=1800.0,
        collective_timeout_s=120.0,
    )  # fmt: skip


def make_fault(kind: str, rank: int | None = None) -> InjectedFault:
    return InjectedFault(run="otter", exercise="3.2", how=kind, rank=rank)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "is_kept"), [("kill-rank", False), ("block-port", False), ("slow-rank", True)])
def test_prepare_drill_leaves_no_restarts_that_would_repair_it(kind: str, is_kept: bool) -> None:
    base = replace(plan(), max_restarts=2)
    command = base.commands[0]
    argv = (*command.argv[:3], "--max-restarts=2", *command.argv[3:], "--max-restarts=own")
    spoiled = drill.prepare_drill(replace(base, commands=(replace(command, argv=argv),)), make_fault(kind, 0))
    assert spoiled.max_restarts == 2 * is_kept
    assert ("--max-restarts=2" in spoiled.commands[0].argv) is is_kept
    assert spoiled.commands[0].argv[-1] == "--max-restarts=own", "what follows the rank's place is the script's"


def test_plan_faults_gives_a_wrong_world_size_to_the_ranks_only() -> None:
    spoiled = drill.prepare_drill(plan(), make_fault("wrong-world-size"))
    for before, after in zip(plan().commands, spoiled.commands, strict=True):
        assert after.argv[:4] == before.argv[:4]
        assert after.argv[4:6] == ("/usr/bin/env", "WORLD_SIZE=3")
        assert after.argv[6:] == before.argv[4:]
    assert drill.plan_faults(plan(), make_fault("wrong-world-size"), after_s=0.1) == {}


@pytest.mark.parametrize("kind", ["kill-rank", "slow-rank", "block-port"])
def test_prepare_drill_of_other_faults_leaves_the_command_and_gives_the_node_an_order(kind: str) -> None:
    rank = None if kind == "block-port" else 1
    assert [command.argv for command in drill.prepare_drill(plan(), make_fault(kind, rank)).commands] == [
        command.argv for command in plan().commands
    ]
    orders = drill.plan_faults(plan(), make_fault(kind, rank), after_s=0.1)
    if kind == "block-port":
        assert orders == {"node0": {"how": kind, "port": 29500}}
    else:
        assert orders == {"node1": {"how": kind, "rank": 1, "after_s": 0.1}}


def test_prepare_drill_makes_a_short_run() -> None:
    spoiled = drill.prepare_drill(plan(), make_fault("kill-rank", 0))
    assert spoiled.timeout_s <= drill.LIMIT_S
    assert spoiled.collective_timeout_s == drill.COLLECTIVE_TIMEOUT_S
    assert spoiled.commands[0].env == {"A": "1", "GPUCOURSE_COLLECTIVE_TIMEOUT_S": "10"}


def test_object_to_plan_without_torchrun_simulated_nodes_and_several_ranks() -> None:
    assert drill.object_to_plan(plan()) is None
    for odd, words in (
        (replace(plan(), mode="aws"), "only on simulated nodes"),
        (replace(plan(), launcher="python"), "starts no ranks that meet"),
        (plan(ranks=1), "at least two"),
    ):
        objection = drill.object_to_plan(odd)
        assert objection is not None
        assert words in objection.what
        assert objection.hint
