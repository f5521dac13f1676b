"""Show what would stop the course on this machine, in an AWS account and in its quotas, and what the course costs there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.cloud import Finding, QuotaRequest
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import (
    Block,
    Cell,
    Code,
    Column,
    Content,
    Facts,
    Paragraph,
    Style,
    View,
    name_column,
    number_column,
    table,
    text_column,
)

if TYPE_CHECKING:
    from gpucourse.labs.results import PreflightReport, ShortQuota

_STATES: dict[str, tuple[str, Style]] = {
    "ok": (UNICODE.good, "good"),
    "missing": (UNICODE.bad, "bad"),
    "warning": (UNICODE.error, "warn"),
    "unknown": ("?", "warn"),
}


def machine(findings: Sequence[Finding], next_step: str, module: str = "") -> View:
    """Show everything that was examined on this machine for a module, and how to repair what is wrong. If nothing is missing,
    also show `next_step`, the command that `gpucourse next` suggests, and the command that deploys the module."""
    ready = _is_ready(findings)
    deploy = f"gpucourse deploy {module}"
    lab = [f"The lab: {deploy}"] if ready and module and deploy != next_step else []
    return View(
        title="What the course needs on this machine",
        blocks=list_findings(findings),
        footer=[summarise_findings(findings), *lab],
        next=next_step if ready else "",
    )


def account(examined: PreflightReport, next_step: str = "") -> View:
    """Show everything that was examined in the account, what the course costs there, and how to repair what is wrong. If
    nothing is missing, also show `next_step`, the command that `gpucourse next` suggests."""
    sources = Paragraph(f"Prices: {'; '.join(examined.sources)}.", "dim")
    ready = _is_ready(examined.findings)
    lab = [f"A lab on AWS: gpucourse deploy {examined.prices[0].module} --target aws"] if ready else []
    return View(
        title=f"What the course needs from AWS in {examined.region} ({examined.market})",
        blocks=[*list_findings(examined.findings), _prices(examined), sources],
        footer=[summarise_findings(examined.findings), *lab],
        next=next_step if ready else "",
    )


def quotas(short: Sequence[ShortQuota], region: str) -> View:
    """Show the quotas that are too small for the course, and what can be done about each."""
    if not short:
        return View(blocks=[Paragraph(f"Every quota in {region} is large enough for the course: nothing to request.")])
    rows = [
        (
            shortage.quota.code,
            shortage.quota.name,
            str(shortage.quota.needed),
            _number_or_unknown(shortage.quota.limit),
            _number_or_unknown(shortage.quota.used),
            _next(shortage),
        )
        for shortage in short
    ]
    columns: list[Column | str] = [
        "quota",
        text_column("what"),
        number_column("needed"),
        number_column("limit"),
        number_column("in use"),
        text_column("next"),
    ]
    return View(title=f"Quotas that are too small in {region}, in vCPUs", blocks=[table(columns, rows)])


def quota_requests(requests: Sequence[QuotaRequest]) -> View:
    """Show what was just requested from AWS, and how to see the reply."""
    rows = [(request.code, f"{request.wanted} vCPU", request.status, request.id or request.case) for request in requests]
    footer = [
        "AWS staff decide within hours or days, and may grant less.",
        "Their answer: gpucourse doctor --target aws, or https://console.aws.amazon.com/servicequotas/home/requests",
    ]
    return View(title="Requested from AWS", blocks=[table(["quota", "asked for", "state", "request"], rows)], footer=footer)


def list_findings(findings: Sequence[Finding]) -> list[Block]:
    """Show what was examined, and how to repair what is wrong."""
    rows = [(Cell(*_STATES[finding.state]), finding.what, finding.detail) for finding in findings]
    mends: dict[str, list[str]] = {}
    for finding in findings:
        if finding.state != "ok" and finding.mend:
            mends.setdefault(finding.mend, []).append(finding.what)
    fixes = [(", ".join(subjects), mend) for mend, subjects in mends.items()]
    return [
        table(["", name_column("part"), text_column("found")], rows),
        Facts([(subjects, mend) for subjects, mend in fixes if " && " not in mend], title="How to fix it"),
        *(_commands(subjects, mend) for subjects, mend in fixes if " && " in mend),
    ]


def _commands(subjects: str, mend: str) -> Block:
    """Return several commands to copy, one per line, after a comment that says who should type them."""
    account, _, commands = mend.rpartition(": aws ")
    lines = f"aws {commands}".split(" && ") if account else mend.split(" && ")
    return Code("\n".join(([f"# {account}"] if account else []) + lines), title=f"How to fix it: {subjects}", are_commands=True)


def _is_ready(findings: Sequence[Finding]) -> bool:
    return not any(finding.state in {"missing", "unknown"} for finding in findings)


def summarise_findings(findings: Sequence[Finding]) -> str:
    """Return in a sentence how many parts are missing or could not be checked."""
    missing = sum(finding.state == "missing" for finding in findings)
    unknown = sum(finding.state == "unknown" for finding in findings)
    unseen = f"{unknown} of {len(findings)} could not be checked, and may be missing too." if unknown else ""
    if missing:
        return f"{missing} of {len(findings)} {'is' if missing == 1 else 'are'} missing. {unseen}".rstrip()
    return f"Nothing that could be checked is missing. {unseen}" if unknown else "Ready."


def _prices(examined: PreflightReport) -> Block:
    rows: list[tuple[Content, ...]] = [
        (
            price.module,
            price.title,
            price.machines,
            f"${price.usd_per_hour:.2f}",
            f"{price.hours.normalize():f}",
            f"${price.usd:.2f}",
        )
        for price in examined.prices
    ]
    if len(rows) > 1:
        rows.append(("", Cell("total", "strong"), "", "", "", Cell(f"${examined.usd:.2f}", "strong")))
    columns: list[Column | str] = [
        "module",
        text_column("title"),
        text_column("machines"),
        number_column("$/h"),
        number_column("hours"),
        number_column("$"),
    ]
    title = "Estimated cost per module, for its usual duration"
    return table(columns, rows, title=title)


def _number_or_unknown(value: int | None) -> str:
    return "unknown" if value is None else str(value)


def _next(shortage: ShortQuota) -> str:
    if shortage.open is not None:
        return f"a request for {shortage.open.wanted} is open ({shortage.open.status})"
    if shortage.quota.enough is None:
        return f"cannot be requested while it is unknown: {shortage.quota.reason}"
    return f"ask for {shortage.quota.needed + (shortage.quota.used or 0)}"
