"""The ledger: its file, what it records of a scripted account, and the prices that it uses."""

from __future__ import annotations

import multiprocessing
import resource
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.aws.money import Bill, Charge, Charged, PriceBook, Rate
from gpucourse.context import Context
from gpucourse.errors import StorageError
from gpucourse.labs.aws import ledger
from gpucourse.labs.aws.ledger import read, read_prices, store_prices, update
from gpucourse.model.cloud import CloudInstance, Market
from gpucourse.workspace import deployments
from gpucourse.workspace.paths import WorkspacePaths
from tests.unit.aws.cloud import REGION, ScriptedAccount
from tests.unit.labs.aws.fakes import choice_of, deployment_of, plan_of
from tests.waiting import STUCK_S

T0 = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def charge(
    item: str,
    usd: str = "0.526",
    *,
    kind: Charged = "instance",
    stack: str = "03-aws",
    module: str = "3",
    units: str = "1",
    market: Market = "on-demand",
    since: datetime | None = None,
) -> Charge:
    rate = Rate(usd_per_hour=Decimal(usd), source="the table", date="2026-07-20", note="a note")
    return Charge(
        item=item,
        kind=kind,
        what="g4dn.xlarge",
        stack=stack,
        module=module,
        rate=rate,
        units=Decimal(units),
        market=market,
        zone="us-east-2a",
        since=since,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return WorkspacePaths(tmp_path).ledger


def begin(path: Path, charges: Sequence[Charge], at: datetime) -> None:
    """Record that these charges begin, in addition to the current ones."""
    for stack in dict.fromkeys(charge.stack for charge in charges):
        running = [span.charge for span in read(path).select(stack).open()]
        update(path, stack, [*running, *(charge for charge in charges if charge.stack == stack)], at)


def end(path: Path, items: Sequence[str], at: datetime, reason: str = "") -> None:
    """Record that these items of the lab end."""
    running = [span.charge for span in read(path).select("03-aws").open() if span.charge.item not in items]
    update(path, "03-aws", running, at, dict.fromkeys(items, (at, reason)))


def test_update_twice_records_once_and_a_restart_is_a_new_span(path: Path) -> None:
    begin(path, [charge("i-1", "1")], T0)
    begin(path, [charge("i-1", "9")], T0 + HOUR)
    end(path, ["i-1"], T0 + 2 * HOUR, "stopped")
    begin(path, [charge("i-1", "1")], T0 + 5 * HOUR)
    end(path, ["i-1", "i-9"], T0 + 6 * HOUR)
    bill = read(path)
    assert [(span.started, span.ended) for span in bill.spans] == [
        (T0, T0 + 2 * HOUR),
        (T0 + 5 * HOUR, T0 + 6 * HOUR),
    ]
    assert bill.total(T0 + 100 * HOUR) == 3
    assert len(path.read_text().splitlines()) == 4


def test_update_follows_existing_resources_and_keeps_the_cost_of_a_lost_node(path: Path) -> None:
    begin(path, [charge("i-9", "1", stack="01-aws")], T0)
    update(path, "03-aws", [charge("i-1", "1"), charge("i-2", "1")], T0)
    update(path, "03-aws", [charge("i-1", "1")], T0 + 5 * HOUR, {"i-2": (T0 + 2 * HOUR, "spot interruption")})
    update(path, "03-aws", [], T0 + 6 * HOUR)
    spans = {span.charge.item: span for span in read(path).spans}
    assert (spans["i-2"].ended, spans["i-2"].reason) == (T0 + 2 * HOUR, "spot interruption")
    assert (spans["i-1"].ended, spans["i-1"].reason) == (T0 + 6 * HOUR, "gone")
    assert spans["i-9"].ended is None
    assert read(path).sum_by("stack", T0 + 6 * HOUR)["03-aws"] == 8


@pytest.mark.parametrize(
    "torn", [b'{"v": 1, "event": "en', b"\xff\xfe", b'{"v": 1}', b"[]", b'{"event": "start", "at": "soon"}']
)
def test_read_loses_nothing_beside_a_torn_line(path: Path, torn: bytes) -> None:
    begin(path, [charge("i-1", "1")], T0)
    with path.open("ab") as file:
        file.write(torn)
    assert read(path).damaged == 1
    assert read(path).total(T0 + HOUR) == 1
    end(path, ["i-1"], T0 + 2 * HOUR)
    begin(path, [charge("i-2", "1")], T0 + 2 * HOUR)
    bill = read(path)
    assert bill.damaged == 1
    assert [span.charge.item for span in bill.spans] == ["i-1", "i-2"]
    assert bill.total(T0 + 3 * HOUR) == 3


def test_update_keeps_what_was_written_when_the_disk_is_full(path: Path) -> None:
    begin(path, [charge("i-1", "1")], T0)
    old_limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, old_limits[1]))
    try:
        with pytest.raises(StorageError, match="no space"):
            begin(path, [charge("i-2", "1")], T0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limits)
    assert read(path).total(T0 + HOUR) == 1
    assert read(path).damaged == 1
    begin(path, [charge("i-2", "1")], T0)
    assert read(path).total(T0 + HOUR) == 2


def _write(path: Path, first: int) -> None:
    for number in range(first, first + 25):
        begin(path, [charge(f"i-{number}", "1", stack=f"lab-{first}")], T0)


def test_update_of_several_processes_at_once_loses_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, first)) for first in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(STUCK_S)
    assert [writer.exitcode for writer in writers] == [0, 0]
    bill = read(path)
    assert (len(bill.spans), bill.damaged) == (50, 0)


NOW = datetime.now(UTC)
RATE = Rate(usd_per_hour=Decimal(1), source="a list", date="2026-11-21")


def charge_of(item: str, kind: str, since: datetime) -> Charge:
    return Charge(item=item, kind=kind, what=kind, stack="s-1", module="3", rate=RATE, since=since)  # type: ignore[arg-type]  # a word


def instance(item: str, state: str, end_time: datetime | None) -> CloudInstance:
    return CloudInstance(
        id=item, node="node0", instance_type="g4dn.xlarge", region=REGION, zone="us-east-2a", market="on-demand",
        state=state, launched=NOW - timedelta(hours=3), ended=end_time, reason="Spot instance termination", stack="s-1",
    )  # fmt: skip


def settle(
    context: Context,
    costing: list[Charge],
    instances: list[CloudInstance],
    expires: str = "",
) -> Bill:
    ledger.settle(
        context.paths,
        ScriptedAccount({}),
        "s-1",
        expires=expires,
        costing=costing,
        find_instances=lambda *_args, **_more: instances,
    )
    return ledger.read(context.paths.ledger)


def test_settle_ends_a_disk_with_the_instance_that_it_began_with(context: Context) -> None:
    began, end_time = NOW - timedelta(hours=3), NOW - timedelta(hours=1)
    disk_start = began + timedelta(minutes=30)
    whole = [
        charge_of("i-1", "instance", began),
        charge_of("vol-1", "disk", began + timedelta(seconds=2)),
        charge_of("vol-2", "disk", disk_start),
    ]
    settle(context, whole, [])
    bill = settle(context, [whole[2]], [instance("i-1", "terminated", end_time)])
    spans = {span.charge.item: span for span in bill.spans}
    assert abs((spans["vol-1"].ended or NOW) - end_time) < timedelta(seconds=1)
    assert spans["vol-1"].reason == "Spot instance termination"
    assert spans["vol-2"].ended is None


def test_settle_ends_what_nobody_saw_end_at_its_deadline(context: Context) -> None:
    deadline = NOW - timedelta(hours=1)
    settle(context, [charge_of("i-1", "instance", NOW - timedelta(hours=3))], [])
    bill = settle(context, [], [], deadline.isoformat())
    assert bill.spans[0].cost(NOW) == pytest.approx(Decimal(2), abs=Decimal("0.01"))


def test_sum_reserved_in_cents_counts_labs_until_their_deadlines(context: Context) -> None:
    """Count a lab by the ledger, and a lab that is being built by its offer. A failed attempt that left nothing, or an expired
    lab, does not count.
    """
    labs = {
        "ready": deployment_of("3", hours=4, usd_per_hour="9"),
        "creating": deployment_of("4", hours=2, usd_per_hour="3"),
        "failed": deployment_of("1", hours=4, usd_per_hour="9"),
    }
    for phase, lab in labs.items():
        lab.uid = phase
        deployments.save(context.paths, lab, phase)  # type: ignore[arg-type]  # the test's own words
    ledger.update(context.paths.ledger, "ready", [replace(charge_of("i-1", "instance", NOW), stack="ready")], NOW)
    cents = Decimal("0.01")
    assert ledger.sum_reserved(context.paths) == pytest.approx(Decimal(4 * 1 + 2 * 3), abs=cents)
    assert ledger.sum_reserved(context.paths, without={labs["creating"].stack}) == pytest.approx(Decimal(4), abs=cents)
    labs["ready"].cloud.expires = (NOW - timedelta(hours=1)).isoformat()
    deployments.save(context.paths, labs["ready"])
    assert ledger.sum_reserved(context.paths) == pytest.approx(Decimal(6), abs=cents)


HERE, KIND = "us-east-2", "g4dn.2xlarge"
TODAY = Rate(usd_per_hour=Decimal("0.8123"), source="AWS Price List", date="2026-11-22")
SPOT = Rate(usd_per_hour=Decimal("0.3"), source="EC2 spot price history", date="2026-11-22")


@pytest.fixture
def with_prices(context: Context) -> Context:
    store_prices(context, PriceBook(region=HERE, fresh={(KIND, "on-demand", ""): TODAY, (KIND, "spot", f"{HERE}a"): SPOT}))
    return context


def test_store_prices_keeps_one_price_for_ledger_and_plan(with_prices: Context) -> None:
    book = read_prices(with_prices.paths, HERE)
    assert book.instance(KIND) == TODAY
    assert book.instance(KIND, "spot", f"{HERE}a") == SPOT
    plan = plan_of(choice_of(with_prices.catalog.module("3")), deployment_of(), book)
    assert plan.charges[0].rate == TODAY
    elsewhere = PriceBook(region="us-west-2").instance(KIND)
    assert read_prices(with_prices.paths, "us-west-2").instance(KIND) == elsewhere, "each region keeps its own"


@pytest.mark.parametrize("amount", ['"-1"', '"NaN"', '"1e9"', '"much"', "[]"])
def test_read_prices_ignores_a_price_that_cannot_be(with_prices: Context, amount: str) -> None:
    file = with_prices.paths.prices
    file.write_text(file.read_text(encoding="utf-8").replace('"0.8123"', amount), encoding="utf-8")
    assert read_prices(with_prices.paths, HERE).instance(KIND) == PriceBook(region=HERE).instance(KIND)
    store_prices(with_prices, PriceBook(region=HERE, fresh={(KIND, "on-demand", ""): TODAY}))
    assert read_prices(with_prices.paths, HERE).instance(KIND) == TODAY
