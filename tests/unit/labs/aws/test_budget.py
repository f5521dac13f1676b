"""The budget check of every command that makes a lab cost more: its messages, and what other commands see in the meantime."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gpucourse.aws.money import Charge, Rate
from gpucourse.context import Context
from gpucourse.errors import ExitCode, UnreachableError, UsageError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.budget import Budget, read_budget, reserve
from gpucourse.model.deployment import AwsDeployment, Reservation
from gpucourse.workspace import deployments
from tests.unit.labs.aws.fakes import deployment_of

DISK = Rate(usd_per_hour=Decimal("0.01"), source="a list", date="2026-11-21")


def make_spending(usd: str, *, hours: float = 1.0, command: str = "gpucourse start 3") -> dict[str, Any]:
    """Return this many USD an hour, for this many hours from now."""
    until = datetime.now(UTC) + timedelta(hours=hours)
    return {"per_hour": Decimal(usd), "until": until, "remedy": "less time", "command": command}


@pytest.fixture
def context(context: Context) -> Context:
    """Return a workspace with a budget of 10 USD."""
    context.paths.settings.write_text("budget_usd: 10\n")
    return context


def stopped_lab(context: Context, module: str = "3") -> AwsDeployment:
    """Return a stopped lab on record, whose disk costs a cent an hour."""
    lab = deployment_of(module, stopped=True, usd_per_hour="3.0000")
    lab.uid = f"uid-{module}"
    deployments.save(context.paths, lab)
    disk = Charge(item=f"vol-{module}", kind="disk", what="a disk", stack=lab.uid, module=module, rate=DISK)
    ledger.update(context.paths.ledger, lab.uid, [disk], datetime.now(UTC))
    return lab


def test_reserve_refuses_what_costs_more_than_is_left(context: Context) -> None:
    lab = stopped_lab(context)
    with pytest.raises(
        UsageError, match=r"this would cost \$12.00 until it ends; \$10.00 of the budget of \$10.00 is left$"
    ) as no:
        reserve(context, lab, **make_spending("3", hours=4), over_budget=False).__enter__()
    assert no.value.exit_code is ExitCode.USAGE
    assert "less time; or go ahead anyway: gpucourse start 3 --yes-over-budget; the budget is set in gpu" in no.value.hint
    assert deployments.load(context.paths, lab.stack).cloud.reservation is None  # type: ignore[union-attr]  # it is on record
    with reserve(context, lab, **make_spending("3", hours=4), over_budget=True):
        pass


def test_reserve_is_seen_by_another_command_until_the_first_ends(context: Context) -> None:
    first, second = stopped_lab(context), stopped_lab(context, "1")
    with reserve(context, first, **make_spending("3", hours=2), over_budget=False):
        with pytest.raises(
            UsageError,
            match=r"cost \$6.00 .*\$(3.9\d|4.00) of the budget of .* is left, after \$6.00 for other labs until their",
        ):
            reserve(context, second, **make_spending("3", hours=2), over_budget=False).__enter__()
        assert read_budget(context, {first.stack}).reserved == pytest.approx(Decimal("0.04"), abs=Decimal("0.01"))
    assert read_budget(context, ()).reserved == pytest.approx(Decimal("0.08"), abs=Decimal("0.01"))
    with reserve(context, second, **make_spending("3", hours=2), over_budget=False):
        pass


def test_reserve_of_a_command_that_fails_sets_nothing_aside_and_keeps_the_error_of_the_lab(context: Context) -> None:
    lab = stopped_lab(context)
    deployments.save(context.paths, lab, error="node1 has not answered")
    with pytest.raises(UnreachableError), reserve(context, lab, **make_spending("3"), over_budget=False):
        raise UnreachableError("node1 does not answer")
    assert lab.cloud.reservation is None
    assert read_budget(context, ()).reserved < Decimal("0.1")
    assert deployments.load(context.paths, lab.stack).error == "node1 has not answered"  # type: ignore[union-attr]  # on record


def test_read_budget_counts_what_a_killed_command_set_aside(context: Context) -> None:
    lab = stopped_lab(context)
    until = (datetime.now(UTC) + timedelta(hours=2)).isoformat(timespec="seconds")
    lab.cloud.reservation = Reservation(usd_per_hour="3", until=until)
    deployments.save(context.paths, lab)
    assert read_budget(context, ()).reserved == pytest.approx(Decimal(6), abs=Decimal("0.1"))
    with reserve(context, lab, **make_spending("4", hours=2), over_budget=False):
        assert read_budget(context, ()).reserved == pytest.approx(Decimal(8), abs=Decimal("0.1"))
    assert read_budget(context, ()).reserved < Decimal("0.1")


def test_check_accepts_exactly_what_is_left() -> None:
    usd, command = Decimal(6), "gpucourse deploy 3 --target aws"
    Budget(budget=usd + 1, spent=Decimal(1)).check(usd, over_budget=False, command=command)
    with pytest.raises(UsageError, match=r"would cost \$6\.00"):
        Budget(budget=usd + 1, spent=Decimal("1.01")).check(usd, over_budget=False, command=command)
    Budget(budget=None, spent=Decimal(1000)).check(usd, over_budget=False, command=command)
