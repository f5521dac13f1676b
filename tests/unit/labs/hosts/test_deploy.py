from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.hosts.deploy import propose
from gpucourse.labs.request import DeployRequest


@pytest.mark.parametrize(
    ("hosts", "nodes", "complaint"),
    [
        ((), None, "no machines are named"),
        (("me@gpu1", " me@gpu1"), None, "named twice: me@gpu1"),
        (("a", "b"), 3, "--nodes 3: 2 machines are named"),
        (tuple(f"gpu{number}" for number in range(65)), None, "65 machines: a lab may have at most 64"),
    ],
)
def test_propose_refuses_machines_before_it_looks_at_them(
    context: Context, hosts: tuple[str, ...], nodes: int | None, complaint: str
) -> None:
    with (
        pytest.raises(UsageError, match=complaint) as caught,
        propose(context, DeployRequest(module="3", hosts=hosts, nodes=nodes)),
    ):
        pass
    assert caught.value.hint.startswith("gpucourse deploy 3 --target hosts --hosts me@gpu1,me@gpu2")
