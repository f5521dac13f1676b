"""What the cloud costs, recorded as it happens: one line when something begins to cost, one when it ends.

Lines are only added, each flushed to the disk before the command continues, so that no crash and no lost node loses the record
of what was spent. A line cut off by a crash is skipped. Amounts are Decimal, stored as text; times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from gpucourse.model.money import Bill, Charge, Rate, Span
from gpucourse.outside.documents import parse_json
from gpucourse.storage import storing
from gpucourse.units import parse_moment
from gpucourse.workspace.files import read_file
from gpucourse.workspace.lock import hold_lock

VERSION = 1
_MOST_BYTES = 32 << 20
_LARGEST_AMOUNT = Decimal(10) ** 12


def begin(path: Path, charges: Sequence[Charge], at: datetime) -> None:
    """Record that these cost money since they began, else since `at`. An open charge keeps its beginning.

    Raises StorageError.
    """
    running = {span.charge.item for span in read(path).open()}
    _append(path, [_line("start", charge.since or at, **_plain(charge)) for charge in charges if charge.item not in running])


def end(path: Path, items: Iterable[str], at: datetime, reason: str = "") -> None:
    """Record that these have cost nothing since `at`. Charges that are not open are left out. Raises StorageError."""
    running = {span.charge.item for span in read(path).open()}
    _append(path, [_line("end", at, item=item, reason=reason) for item in dict.fromkeys(items) if item in running])


def settle(
    path: Path, stack: str, charges: Sequence[Charge], at: datetime, ended: Mapping[str, tuple[datetime, str]] | None = None
) -> None:
    """Update the ledger to what this stack costs right now: `charges` is the complete list.

    A new charge began at its own time if it has one, else at `at`. One that is no longer among them ended, at the time and for
    the reason that `ended` has for its item, else at `at`. Raises StorageError.
    """
    known = ended or {}
    costing = {charge.item for charge in charges}
    for span in read(path).of(stack).open():
        if span.charge.item not in costing:
            moment, reason = known.get(span.charge.item, (at, "gone"))
            end(path, [span.charge.item], moment, reason)
    begin(path, charges, at)


def read(path: Path) -> Bill:
    """Read the ledger at `path`, empty if there is none. Lines that cannot be parsed are counted, not read. Raises MissingError
    if it is not a plain file, or larger than any valid one."""
    lines = (read_file(path, _MOST_BYTES) or b"").split(b"\n")
    spans: list[Span] = []
    running: dict[str, int] = {}
    damaged = 0
    for line in filter(None, lines):
        try:
            _take(parse_json(line), spans, running)
        except (ValueError, KeyError, TypeError, InvalidOperation):
            damaged += 1
    return Bill(spans=tuple(sorted(spans, key=lambda span: span.started)), damaged=damaged)


def _take(entry: dict[str, Any], spans: list[Span], running: dict[str, int]) -> None:
    at = parse_moment(entry["at"])
    if entry["event"] == "start":
        charge = _charge(entry)
        if charge.item not in running:
            running[charge.item] = len(spans)
            spans.append(Span(charge=charge, started=at))
    elif entry["event"] == "end":
        where = running.pop(entry["item"], None)
        if where is not None:
            began = spans[where]
            spans[where] = replace(began, ended=max(at, began.started), reason=str(entry.get("reason", "")))


def _charge(entry: dict[str, Any]) -> Charge:
    rate = Rate(usd_per_hour=_amount(entry["usd_per_hour"]), note=entry.get("note", ""), **_texts(entry, "source date"))
    return Charge(units=_amount(entry["units"]), rate=rate, **_texts(entry, "item kind what stack module market zone"))


def _texts(entry: dict[str, Any], names: str) -> dict[str, Any]:
    return {name: entry[name] for name in names.split()}


def _amount(text: str) -> Decimal:
    amount = Decimal(text)
    if not 0 <= amount <= _LARGEST_AMOUNT:  # also false for NaN
        raise ValueError(f"{text[:40]!r} is no amount")
    return amount


def _plain(charge: Charge) -> dict[str, str]:
    values = {**vars(charge.rate), **vars(charge)}
    return {name: str(value) for name, value in values.items() if name not in {"rate", "since"}}


def _line(event: str, at: datetime, **fields: str) -> bytes:
    stamp = at.astimezone(UTC).isoformat(timespec="milliseconds")
    return json.dumps({"v": VERSION, "event": event, "at": stamp, **fields}, ensure_ascii=False).encode() + b"\n"


def _append(path: Path, lines: Sequence[bytes]) -> None:
    """Add whole lines in one write, flushed to the disk before this returns; an incomplete line before them is ended first."""
    if not lines:
        return
    with storing(path), hold_lock(path) as file:  # the file is its own lock
        size = os.lseek(file, 0, os.SEEK_END)
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + b"".join(lines)
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
