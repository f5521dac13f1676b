from __future__ import annotations

from datetime import date
from decimal import Decimal

from gpucourse.aws.money import BilledCost
from gpucourse.labs.aws.cost import Cost, CostPart, Running
from gpucourse.ui.views import cost
from tests.unit.ui.examples import END, render_page


def test_cost_with_everything_and_with_nothing() -> None:
    nothing = Cost(
        usd=Decimal(0), usd_per_hour=Decimal(0), usd_to_end=Decimal(0), budget_usd=None, left_usd=None,
        running=[], modules=[], exercises=[], kinds=[], sources=[],
    )  # fmt: skip
    assert "simulated nodes are free" in render_page(cost.cost(nothing))
    running = Running(
        stack="03-aws-t4", module="3", usd_per_hour=Decimal("1.54"), usd=Decimal(2), expires=END, usd_to_end=Decimal(3)
    )
    lost_lab = Running(stack="c0ffee-1", module="3", usd_per_hour=Decimal(1), usd=Decimal(1))
    bill = BilledCost(
        first=date(2026, 11, 1), until=date(2026, 11, 22), services=(("EC2 - Other", Decimal("0.25")),), requests=1, final=False
    )
    everything = Cost(
        usd=Decimal(3), usd_per_hour=Decimal(2), usd_to_end=Decimal(12), budget_usd=Decimal(10), left_usd=Decimal(7),
        running=[running, lost_lab],
        modules=[CostPart(name="3", usd=Decimal(3), title="Parallel computing")],
        exercises=[CostPart(name="3.2", usd=Decimal("0.004"), hours=0.5)], kinds=[CostPart(name="instance", usd=Decimal(3))],
        sources=["EC2 on-demand prices of us-east-1, 2026-07-20"], warnings=["a warning"], billed=bill,
    )  # fmt: skip
    page = render_page(cost.cost(everything))
    for words in (
        "$7.00 left of $10.00; not enough until the deadline", "no record: gpucourse leaks", "3 Parallel computing",
        "less than $0.01", "0.50 h", "not final: $0.25", "2026-07-20", "a warning",
    ):  # fmt: skip
        assert words in page
