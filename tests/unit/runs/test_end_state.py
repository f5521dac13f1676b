from __future__ import annotations

import pytest

from gpucourse.model.record import NodeExit
from gpucourse.runs.end_state import end_state


def node(code: int, reason: str = "exited") -> NodeExit:
    return NodeExit(node="node0", code=code, reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exits", "state"),
    [
        ([], "lost"),
        ([node(0), node(0)], "succeeded"),
        ([node(0), node(1)], "failed"),
        ([node(1), node(143, "cancelled")], "failed"),
        ([node(143, "cancelled"), node(143, "cancelled")], "cancelled"),
        ([node(137, "timed_out"), node(1)], "timed_out"),
        ([node(255, "lost"), node(1), node(143, "cancelled")], "lost"),
    ],
)
def test_end_state_is_the_weightiest_reason(exits: list[NodeExit], state: str) -> None:
    assert end_state(exits) == state
