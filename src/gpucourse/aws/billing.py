"""What AWS has billed for the course, from Cost Explorer. Each request costs a cent, so none is made without the user's
request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from gpucourse.aws import tags
from gpucourse.aws.session import Account

_METRIC = "UnblendedCost"


@dataclass(frozen=True, kw_only=True)
class BilledCost:
    """The cost billed between two days (the second not included), in USD: in total, and by AWS's name for the service.

    `requests` is the number of requests made, each of which costs a cent. `final` is False if AWS may still correct the cost.
    """

    first: date
    until: date
    services: tuple[tuple[str, Decimal], ...]
    requests: int
    final: bool

    @property
    def usd(self) -> Decimal:
        """Return the USD of all services together."""
        return sum((amount for _service, amount in self.services), Decimal(0))


def query_billed_cost(account: Account, first: date, last: date) -> BilledCost:
    """Return the cost of everything with the course's tag, from the first day to the last.

    The cost is zero if the tag `Project` is not activated as a cost allocation tag. Raises the errors of `Account.call`.
    """
    until = last + timedelta(days=1)
    totals: dict[str, Decimal] = {}
    requests, page, final = 0, "", True
    while True:
        more = {"NextPageToken": page} if page else {}
        answer = account.call(
            "ce",
            "get_cost_and_usage",
            TimePeriod={"Start": first.isoformat(), "End": until.isoformat()},
            Granularity="MONTHLY",  # the fewest pages
            Metrics=[_METRIC],
            Filter={"Tags": {"Key": "Project", "Values": [tags.PROJECT]}},
            GroupBy=[{"Type": "DIMENSION", "Key": "SERVICE"}],
            **more,
        )
        requests += 1
        for period in answer["ResultsByTime"]:
            final = final and not period.get("Estimated", False)
            for group in period.get("Groups", ()):
                name = str(group["Keys"][0])
                totals[name] = totals.get(name, Decimal(0)) + Decimal(group["Metrics"][_METRIC]["Amount"])
        page = str(answer.get("NextPageToken") or "")
        if not page:
            return BilledCost(first=first, until=until, services=_largest_first(totals), requests=requests, final=final)


def _largest_first(totals: dict[str, Decimal]) -> tuple[tuple[str, Decimal], ...]:
    return tuple(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))
