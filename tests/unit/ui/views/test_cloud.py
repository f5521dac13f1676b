"""A lab that costs money, on the screen: the quote before the question, and the sum of several labs."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from gpucourse.labs.aws.budget import Budget
from gpucourse.labs.results import PricedProposal
from gpucourse.model.cloud import Finding
from gpucourse.ui.render import render
from gpucourse.ui.views import cloud
from tests.unit.labs.aws.fakes import ONE_NODE, choice_of, context_in, deployment_of, module_with, plan_of


def proposal_of(tmp_path: Path, *gpus: str, later_gpus: tuple[str, ...] = (), budget: Budget | None = None) -> PricedProposal:
    context, _events = context_in(tmp_path)
    module = module_with(ONE_NODE, context)
    plans = []
    for gpu in gpus:
        kind = {"t4": "g4dn.xlarge", "l4": "g6.xlarge"}[gpu]
        plan = plan_of(choice_of(module, gpu=gpu), replace(deployment_of(gpu=gpu, instance_type=kind), nodes_wanted=1))
        plan.changes = [("create", "aws_vpc.this"), ("create", "aws_instance.node")]
        plans.append(plan)
    return PricedProposal(
        plans=plans,
        later=[choice_of(module, gpu=gpu) for gpu in later_gpus],
        findings=[
            Finding(what="spot role", state="warning", detail="there is none yet", mend="aws iam ..."),
            Finding(what="costs", state="warning", detail="said elsewhere", kind="price"),
            Finding(what="region", state="ok", detail="us-east-2"),
        ],
        budget=budget or Budget(budget=None, spent=Decimal(0)),
    )


def test_quote_shows_the_lab_its_deadline_and_its_price(tmp_path: Path) -> None:
    text = render(cloud.quote(proposal_of(tmp_path, "t4"), command="gpucourse deploy 3 --target aws"), width=80)
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "03-aws-t4 in us-east-2a",
        "1 x g4dn.xlarge (T4, on-demand)",
        "2 to create",
        "automatically at",
        "120 GB disk (gp3)",
        "1 public address (IPv4)",
        "total",
        "until it ends  $2.26 (4 h)",
        "no budget is set",
        "spot role: there is none yet",
        "Nothing was built. Build it: gpucourse deploy 3 --target aws",
    ):
        assert words in text
    assert "said elsewhere" not in text


def test_quote_postpones_labs_that_exceed_the_quota(tmp_path: Path) -> None:
    text = " ".join(render(cloud.quote(proposal_of(tmp_path, "t4", later_gpus=("l4",))), width=80).split())
    assert "T4 now, L4 after it" in text
    assert "gpucourse destroy 3 --gpu t4, then this command again with --gpu l4" in text


def test_quote_of_several_labs_has_one_sum_and_the_budget(tmp_path: Path) -> None:
    budget = Budget(budget=Decimal(3), spent=Decimal("1.5"))
    text = render(cloud.quote(proposal_of(tmp_path, "t4", "l4", budget=budget)), width=80)
    assert "until all end" in text
    assert "$1.50 of $3.00 is left; $1.50 is spent" in text
    text = render(cloud.quote(proposal_of(tmp_path, "t4", budget=replace(budget, reserved=Decimal("0.5")))), width=120)
    assert "$1.00 of $3.00 is left; $1.50 is spent, $0.50 set aside for other labs until their deadlines" in text
