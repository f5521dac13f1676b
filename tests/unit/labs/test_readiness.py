"""The readiness checks that every target has, with nodes that answer from a script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import InfrastructureError
from gpucourse.labs.readiness import wait_until_ready
from gpucourse.model.event import NodeEvent
from gpucourse.model.node import Inventory
from tests.unit.labs.aws.fakes import ScriptedNodes, context_in, make_completed, node


def test_wait_until_ready_writes_the_ssh_configuration_and_checks_the_python_of_each_node(tmp_path: Path) -> None:
    context, events = context_in(tmp_path)
    lab = Inventory(stack="03-local", nodes=(node("node0", role="head"), node("node1", address="127.0.0.2")))
    paths = context.paths.stack(lab.stack)
    wait_until_ready(replace(context, make_transport=lambda _key: ScriptedNodes(lambda *_: make_completed())), paths, lab)
    assert "Host node1" in paths.ssh_config.read_text()
    steps = [(event.node, event.step) for event in events if isinstance(event, NodeEvent)]
    assert {("node0", "shell"), ("node1", "shell"), ("node0", "python")} <= set(steps)
    no_python = replace(context, make_transport=lambda _key: ScriptedNodes(lambda *_: make_completed(code=1)))
    with pytest.raises(InfrastructureError, match="node1: there is no program python3"):
        wait_until_ready(no_python, paths, lab)
