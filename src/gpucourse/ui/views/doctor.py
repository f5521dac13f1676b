"""What would stop the course, on the screen: this machine, an AWS account, its quotas; and what the course costs there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.cloud import Finding, QuotaRequest
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Code, Column, Content, Facts, Paragraph, Part, Style, View, table

if TYPE_CHECKING:
    from gpucourse.labs.aws.doctor import Examined, Short

_STATES: dict[str, tuple[str, Style]] = {
    "ok": (UNICODE.good, "good"),
    "missing": (UNICODE.bad, "bad"),
    "warning": (UNICODE.error, "warn"),
    "unknown": ("?", "warn"),
}


def machine(findings: Sequence[Finding]) -> View:
    """Everything that was looked at on this machine, and the command that mends what is not well."""
    parts = _found(findings)
    footer = (_verdict(findings, "Nothing stands in the way. Start: gpucourse deploy 3"),)
    return View(title="What the course needs on this machine", parts=tuple(parts), footer=footer)


def account(examined: Examined) -> View:
    """Everything that was looked at in the account, what the course costs there, and what mends what is not well."""
    parts = _found(examined.findings)
    parts.append(_prices(examined))
    parts.append(Paragraph(f"Prices: {'; '.join(examined.sources)}.", "dim"))
    first = examined.prices[0].module
    footer = (_verdict(examined.findings, f"Nothing stands in the way. Start: gpucourse deploy {first} --target aws"),)
    title = f"What the course needs of AWS in {examined.region} ({examined.market})"
    return View(title=title, parts=tuple(parts), footer=footer)


def quotas(short: Sequence[Short], region: str) -> View:
    """The quotas that do not hold what the course needs, and what can be done about each."""
    if not short:
        return View(parts=(Paragraph(f"Every quota in {region} holds what the course needs: there is nothing to ask for."),))
    rows = [
        (one.quota.code, one.quota.name, str(one.quota.needed), _known(one.quota.limit), _known(one.quota.used), _next(one))
        for one in short
    ]
    columns: list[Column | str] = [
        "quota",
        Column("what", wrap=True),
        Column("needed", align="right"),
        Column("limit", align="right"),
        Column("in use", align="right"),
        Column("next", wrap=True),
    ]
    return View(title=f"Quotas that are too small in {region}, in vCPU", parts=(table(columns, rows),))


def requested(requests: Sequence[QuotaRequest]) -> View:
    """What was asked of AWS just now, and how its answer is heard."""
    rows = [(one.code, f"{one.wanted} vCPU", one.status, one.id or one.case) for one in requests]
    footer = (
        "People at AWS decide, within hours to days, and may grant less.",
        "Their answer: gpucourse doctor --target aws, or https://console.aws.amazon.com/servicequotas/home/requests",
    )
    return View(title="Asked of AWS", parts=(table(["quota", "asked for", "state", "request"], rows),), footer=footer)


def _found(findings: Sequence[Finding]) -> list[Part]:
    rows = [(Cell(*_STATES[each.state]), each.what, each.detail) for each in findings]
    parts: list[Part] = [table(["", Column("part", style="strong"), Column("found", wrap=True)], rows)]
    mends: dict[str, list[str]] = {}
    for each in findings:
        if each.state != "ok" and each.mend:
            mends.setdefault(each.mend, []).append(each.what)
    told = tuple((", ".join(whats), mend) for mend, whats in mends.items() if " && " not in mend)
    if told:
        parts.append(Facts(told, title="How to mend it"))
    parts += [_commands(", ".join(whats), mend) for mend, whats in mends.items() if " && " in mend]
    return parts


def _commands(what: str, mend: str) -> Part:
    """Several commands, to copy: one a line, below who should type them."""
    who, _, commands = mend.rpartition(": aws ")
    lines = f"aws {commands}".split(" && ") if who else mend.split(" && ")
    return Code("\n".join(([f"# {who}"] if who else []) + lines), title=f"How to mend it: {what}")


def _verdict(findings: Sequence[Finding], well: str) -> str:
    missing = sum(each.state == "missing" for each in findings)
    unknown = sum(each.state == "unknown" for each in findings)
    unseen = f"{unknown} of {len(findings)} could not be looked at, so they may stop it too." if unknown else ""
    if missing:
        return f"{missing} of {len(findings)} would stop the course. {unseen}".rstrip()
    return f"Nothing that could be seen stands in the way. {unseen}" if unknown else well


def _prices(examined: Examined) -> Part:
    rows: list[tuple[Content, ...]] = [
        (one.module, one.title, one.machines, f"${one.usd_per_hour:.2f}", f"{one.hours.normalize():f}", f"${one.usd:.2f}")
        for one in examined.prices
    ]
    if len(rows) > 1:
        rows.append(("", Cell("together", "strong"), "", "", "", Cell(f"${examined.usd:.2f}", "strong")))
    columns: list[Column | str] = [
        "module",
        Column("title", wrap=True),
        Column("machines", wrap=True),
        Column("$/h", align="right"),
        Column("hours", align="right"),
        Column("$", align="right"),
    ]
    title = "What it costs while a lab stands as long as its module usually takes"
    return table(columns, rows, title=title)


def _known(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _next(one: Short) -> str:
    if one.open is not None:
        return f"a request for {one.open.wanted} is open ({one.open.status})"
    if one.quota.enough is None:
        return f"cannot be asked for while it is not known: {one.quota.reason}"
    return f"ask for {one.quota.needed + (one.quota.used or 0)}"
