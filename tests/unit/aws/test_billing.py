from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from gpucourse.aws.billing import query_billed_cost
from tests.unit.aws.cloud import ScriptedAccount

FIRST, LAST = date(2026, 11, 1), date(2026, 11, 21)


def answer(*services: tuple[str, str], page: str = "", estimated: bool = False) -> dict[str, Any]:
    groups = [{"Keys": [name], "Metrics": {"UnblendedCost": {"Amount": usd, "Unit": "USD"}}} for name, usd in services]
    period = {"TimePeriod": {"Start": "2026-11-01", "End": "2026-11-22"}, "Groups": groups, "Estimated": estimated}
    return {"ResultsByTime": [period]} | ({"NextPageToken": page} if page else {})


def test_query_billed_cost_asks_once_by_tag_and_service() -> None:
    said = answer(("EC2 - Other", "0.25"), ("Amazon Elastic Compute Cloud - Compute", "3.125"), estimated=True)
    account = ScriptedAccount({("ce", "get_cost_and_usage"): said})
    bill = query_billed_cost(account, FIRST, LAST)
    assert bill.services == (("Amazon Elastic Compute Cloud - Compute", Decimal("3.125")), ("EC2 - Other", Decimal("0.25")))
    assert (bill.usd, bill.requests, bill.final) == (Decimal("3.375"), 1, False)
    [asked] = account.list_calls("get_cost_and_usage")
    assert asked["TimePeriod"] == {"Start": "2026-11-01", "End": "2026-11-22"}  # AWS leaves the last day out
    assert asked["Filter"] == {"Tags": {"Key": "Project", "Values": ["gpucourse"]}}


def test_query_billed_cost_counts_pages_since_each_costs_a_cent() -> None:
    def by_page(parameters: dict[str, Any]) -> dict[str, Any]:
        return answer(("EC2 - Other", "1")) if "NextPageToken" in parameters else answer(("EC2 - Other", "2"), page="next")

    bill = query_billed_cost(ScriptedAccount({("ce", "get_cost_and_usage"): by_page}), FIRST, LAST)
    assert (bill.usd, bill.requests, bill.final) == (Decimal(3), 2, True)
