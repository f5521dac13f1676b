"""What a deploy says that it has done."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpucourse.actions.cloud import building
from gpucourse.model.node import Inventory
from tests.unit.actions.cloud.fakes import node


def test_a_node_that_is_made_anew_is_told_apart_from_one_more() -> None:
    before = Inventory(stack="02-aws-t4", nodes=(node("node0", role="head"), node("node1")))
    anew, more = (f'module.workers.aws_instance.node["{name}-on-demand"]' for name in ("node1", "node10"))
    changes = [("create", anew), ("create", more), ("create", "aws_vpc.this")]
    offer: Any = SimpleNamespace(quote=SimpleNamespace(changes=changes))
    assert building._healed(before, offer) == [anew]
    assert building._healed(None, offer) == []
