from __future__ import annotations

import pytest

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.labs.local.deploy import propose
from gpucourse.labs.request import DeployRequest


@pytest.mark.parametrize(
    ("request_", "complaint", "hint"),
    [
        (DeployRequest(module="3", nodes=65), "module 3 accepts 1 to 64 nodes", "gpucourse deploy 3 --nodes 2"),
        (DeployRequest(module="2", unpack_slurm=True, dry_run=True), "--dry-run downloads nothing", "--unpack-slurm"),
    ],
)
def test_propose_refuses_what_it_cannot_build(context: Context, request_: DeployRequest, complaint: str, hint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught, propose(context, request_):
        pass
    assert hint in caught.value.hint


def test_propose_of_a_new_lab_has_the_nodes_of_its_module(context: Context) -> None:
    with propose(context, DeployRequest(module="3")) as proposal:
        assert (proposal.fresh, proposal.deployment.nodes_wanted, proposal.removed_nodes) == (True, 2, frozenset())
