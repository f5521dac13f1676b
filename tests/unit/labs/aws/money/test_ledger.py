"""The ledger against an account that is moto's: what ended, when, and what costs again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.labs.aws.money import ledger as bill
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.money import Bill, Charge, Rate
from gpucourse.workspace import deployments, ledger
from gpucourse.workspace.locate import open_workspace
from tests.unit.aws.cloud import REGION, ScriptedAccount
from tests.unit.labs.aws.fakes import deployment_of

NOW = datetime.now(UTC)
RATE = Rate(usd_per_hour=Decimal(1), source="a list", date="2026-11-21")


def charge(item: str, kind: str, since: datetime) -> Charge:
    return Charge(item=item, kind=kind, what=kind, stack="s-1", module="3", rate=RATE, since=since)  # type: ignore[arg-type]  # a word


def instance(item: str, state: str, ended: datetime | None) -> CloudInstance:
    return CloudInstance(
        id=item, node="node0", instance_type="g4dn.xlarge", region=REGION, zone="us-east-2a", market="on-demand",
        state=state, launched=NOW - timedelta(hours=3), ended=ended, reason="Spot instance termination", stack="s-1",
    )  # fmt: skip


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(workspace=open_workspace(tmp_path / "w"), folders=CourseFolders(tmp_path, tmp_path, tmp_path), environ={})


def settle(
    context: Context,
    costing: list[Charge],
    listed: list[CloudInstance],
    expires: str = "",
) -> Bill:
    bill.settle(
        context,
        ScriptedAccount({}),
        "s-1",
        expires=expires,
        find_charges=lambda *_args, **_more: costing,
        find_instances=lambda *_args, **_more: listed,
    )
    return ledger.read(context.paths.ledger)


def test_settle_ends_a_disk_with_the_instance_that_it_began_with(context: Context) -> None:
    began, ended = NOW - timedelta(hours=3), NOW - timedelta(hours=1)
    other = began + timedelta(minutes=30)
    whole = [
        charge("i-1", "instance", began),
        charge("vol-1", "disk", began + timedelta(seconds=2)),
        charge("vol-2", "disk", other),
    ]
    settle(context, whole, [])
    ledger = settle(context, [whole[2]], [instance("i-1", "terminated", ended)])
    spans = {span.charge.item: span for span in ledger.spans}
    assert abs((spans["vol-1"].ended or NOW) - ended) < timedelta(seconds=1)
    assert spans["vol-1"].reason == "Spot instance termination"
    assert spans["vol-2"].ended is None


def test_settle_ends_what_nobody_saw_end_at_its_deadline(context: Context) -> None:
    deadline = NOW - timedelta(hours=1)
    settle(context, [charge("i-1", "instance", NOW - timedelta(hours=3))], [])
    ledger = settle(context, [], [], deadline.isoformat())
    assert ledger.spans[0].cost(NOW) == pytest.approx(Decimal(2), abs=Decimal("0.01"))


def test_sum_reserved_counts_labs_until_their_deadlines(context: Context) -> None:
    """By the ledger; one that is being built by its offer; one that failed and left nothing, or is over, nothing at all."""
    labs = {
        "ready": deployment_of("3", hours=4, usd_per_hour="9"),
        "creating": deployment_of("4", hours=2, usd_per_hour="3"),
        "failed": deployment_of("1", hours=4, usd_per_hour="9"),
    }
    for phase, lab in labs.items():
        lab.uid = phase
        deployments.save(context.paths, lab, phase)  # type: ignore[arg-type]  # the test's own words
    ledger.begin(context.paths.ledger, [replace(charge("i-1", "instance", NOW), stack="ready")], NOW)
    cents = Decimal("0.01")
    assert bill.sum_reserved(context) == pytest.approx(Decimal(4 * 1 + 2 * 3), abs=cents)
    assert bill.sum_reserved(context, without={labs["creating"].stack}) == pytest.approx(Decimal(4), abs=cents)
    labs["ready"].cloud.expires = (NOW - timedelta(hours=1)).isoformat()
    deployments.save(context.paths, labs["ready"])
    assert bill.sum_reserved(context) == pytest.approx(Decimal(6), abs=cents)


def test_settle_charges_a_restarted_node_from_its_restart(context: Context) -> None:
    first = charge("i-1", "instance", NOW - timedelta(hours=3))
    settle(context, [first], [])
    settle(context, [], [instance("i-1", "stopped", NOW - timedelta(hours=2))])
    ledger = settle(context, [first], [])
    assert [span.ended is None for span in ledger.spans] == [False, True]
    assert ledger.total(NOW) < Decimal("1.1")
