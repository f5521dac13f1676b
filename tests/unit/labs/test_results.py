from __future__ import annotations

from decimal import Decimal

from gpucourse.context import Context
from gpucourse.labs.aws.budget import Budget
from gpucourse.labs.results import PricedProposal
from tests.unit.labs.aws.fakes import choice_of, deployment_of, plan_of


def test_usd_until_end_leaves_out_labs_that_exist(context: Context) -> None:
    new, exists = (plan_of(choice_of(context.catalog.module("3")), deployment_of()) for _ in range(2))
    new.changes, exists.changes = [("create", "aws_instance.node[0]")], [("update", "aws_vpc.this")]
    proposal = PricedProposal(plans=[new, exists], later=[], findings=[], budget=Budget(budget=None, spent=Decimal(0)))
    assert proposal.usd_until_end == new.usd_until_end > 0
    assert proposal.matters
