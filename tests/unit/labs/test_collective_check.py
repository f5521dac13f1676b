"""Nodes that work together: a port that all of them reach, and one small sum. On this machine, processes replace the nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError
from gpucourse.labs import collective_check
from gpucourse.model.node import Node
from gpucourse.ports import CommandResult
from tests.parts import needs_module
from tests.unit.labs.aws.fakes import fleet_of, make_completed, node
from tests.waiting import STUCK_S

pytestmark = needs_module("torch")


def here(_node: Node, command: str) -> CommandResult:
    """Return the command for this machine, where the loopback interface leads to the other nodes."""
    if command.startswith("ip "):
        return make_completed("127.0.0.1 dev lo src 127.0.0.1 uid 0\n")
    result = subprocess.run(["sh", "-c", command], capture_output=True, check=False, timeout=STUCK_S, env=dict(os.environ))
    return CommandResult(code=result.returncode, stdout=result.stdout, stderr=result.stderr)


@pytest.fixture
def nodes() -> list[Node]:
    return [replace(node(name), python=sys.executable) for name in ("node0", "node1")]


def test_run_names_the_address_at_which_the_nodes_do_not_meet(nodes: list[Node], context: Context) -> None:
    def answer_behind_a_wall(node: Node, command: str) -> CommandResult:
        if "init_process_group" in command:
            return make_completed(code=1, complaint="Traceback\nDistNetworkError: timed out\n")
        return here(node, command)

    with pytest.raises(InfrastructureError, match=r"all-reduce over the nodes, which meet at .*:\d+, failed\n") as caught:
        collective_check.run(context, fleet_of(answer_behind_a_wall, *nodes), nodes, set())
    assert "node1: DistNetworkError: timed out" in caught.value.what
