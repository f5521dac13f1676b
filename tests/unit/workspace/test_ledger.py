from __future__ import annotations

import multiprocessing
import resource
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpucourse.errors import StorageError
from gpucourse.model.cloud import Market
from gpucourse.model.money import Charge, Charged, Rate
from gpucourse.workspace.ledger import begin, end, read, settle
from gpucourse.workspace.paths import WorkspacePaths
from tests.waiting import STUCK_S

T0 = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
GP3 = Decimal("0.08") / 730


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


NODE = [
    charge("i-1"),
    charge("vol-1", str(GP3), kind="disk", units="100"),
    charge("i-1:ipv4", "0.005", kind="address"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return WorkspacePaths(tmp_path).ledger


def test_total_of_a_lab_from_its_launch_to_its_end_to_the_cent(path: Path) -> None:
    """Module 1: 3 h x (0.526 + 0.005 + 100 x 0.08/730) = 1.63."""
    begin(path, NODE, T0)
    end(path, ["i-1", "vol-1", "i-1:ipv4"], T0 + 3 * HOUR, "destroyed")
    ledger = read(path)
    assert f"{ledger.total(T0 + 300 * HOUR):.2f}" == "1.63"
    assert ledger.open() == ()
    assert {span.reason for span in ledger.spans} == {"destroyed"}


def test_total_counts_seconds_and_at_least_a_minute_for_an_instance(path: Path) -> None:
    begin(path, [charge("i-1", "3.6"), charge("vol-1", "3.6", kind="disk")], T0)
    end(path, ["i-1", "vol-1"], T0 + timedelta(seconds=10))
    by_item = read(path).by("item", T0 + HOUR)
    assert by_item == {"i-1": Decimal("0.06"), "vol-1": Decimal("0.01")}


def test_begin_twice_is_once_and_a_restart_is_a_span_of_its_own(path: Path) -> None:
    begin(path, [charge("i-1", "1")], T0)
    begin(path, [charge("i-1", "9")], T0 + HOUR)
    end(path, ["i-1"], T0 + 2 * HOUR, "stopped")
    begin(path, [charge("i-1", "1")], T0 + 5 * HOUR)
    end(path, ["i-1", "i-9"], T0 + 6 * HOUR)
    ledger = read(path)
    assert [(span.started, span.ended) for span in ledger.spans] == [
        (T0, T0 + 2 * HOUR),
        (T0 + 5 * HOUR, T0 + 6 * HOUR),
    ]
    assert ledger.total(T0 + 100 * HOUR) == 3
    assert len(path.read_text().splitlines()) == 4


def test_by_sums_modules_stacks_kinds_and_markets(path: Path) -> None:
    begin(path, [*NODE, charge("i-2", "2", stack="01-aws", module="1", market="spot")], T0)
    ledger, now = read(path), T0 + HOUR
    assert ledger.by("module", now)["1"] == 2
    assert set(ledger.by("stack", now)) == {"03-aws", "01-aws"}
    assert set(ledger.by("kind", now)) == {"instance", "disk", "address"}
    assert ledger.by("market", now)["spot"] == 2
    for field in ("module", "stack", "kind", "market", "zone", "item"):
        assert sum(ledger.by(field, now).values(), Decimal(0)) == ledger.total(now)
    assert ledger.of("01-aws").per_hour() == 2


def test_total_between_two_moments_is_what_stood_then(path: Path) -> None:
    begin(path, [charge("i-1", "1"), charge("i-2", "1"), charge("i-3", "7", stack="01-aws")], T0)
    end(path, ["i-2"], T0 + 2 * HOUR)
    bill, now = read(path).of("03-aws"), T0 + 10 * HOUR
    assert bill.total(now, T0 + HOUR / 2, T0 + HOUR) == 1
    assert bill.total(now, T0 + HOUR, T0 + 3 * HOUR) == 2 + 1
    assert bill.total(now, T0 + 9 * HOUR, now) == 1
    assert read(path).of("02-aws").total(now, T0, T0 + HOUR) == 0


def test_settle_follows_what_stands_and_keeps_the_cost_of_a_lost_node(path: Path) -> None:
    begin(path, [charge("i-9", "1", stack="01-aws")], T0)
    settle(path, "03-aws", [charge("i-1", "1"), charge("i-2", "1")], T0)
    settle(path, "03-aws", [charge("i-1", "1")], T0 + 5 * HOUR, {"i-2": (T0 + 2 * HOUR, "spot interruption")})
    settle(path, "03-aws", [], T0 + 6 * HOUR)
    spans = {span.charge.item: span for span in read(path).spans}
    assert (spans["i-2"].ended, spans["i-2"].reason) == (T0 + 2 * HOUR, "spot interruption")
    assert (spans["i-1"].ended, spans["i-1"].reason) == (T0 + 6 * HOUR, "gone")
    assert spans["i-9"].ended is None
    assert read(path).by("stack", T0 + 6 * HOUR)["03-aws"] == 8


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
    ledger = read(path)
    assert ledger.damaged == 1
    assert [span.charge.item for span in ledger.spans] == ["i-1", "i-2"]
    assert ledger.total(T0 + 3 * HOUR) == 3


def test_begin_keeps_what_was_written_when_the_disk_is_full(path: Path) -> None:
    begin(path, [charge("i-1", "1")], T0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
    try:
        with pytest.raises(StorageError, match="no space"):
            begin(path, [charge("i-2", "1")], T0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read(path).total(T0 + HOUR) == 1
    assert read(path).damaged == 1
    begin(path, [charge("i-2", "1")], T0)
    assert read(path).total(T0 + HOUR) == 2


def _write(path: Path, first: int) -> None:
    for number in range(first, first + 25):
        begin(path, [charge(f"i-{number}", "1")], T0)


def test_begin_of_several_processes_at_once_loses_nothing(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, first)) for first in (0, 100, 200)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(STUCK_S)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    ledger = read(path)
    assert (len(ledger.spans), ledger.damaged) == (75, 0)
