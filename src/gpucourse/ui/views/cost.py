"""The cost so far, the current cost, and how reliable both figures are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.tables import (
    Block,
    Cell,
    Column,
    Facts,
    Items,
    Paragraph,
    Table,
    View,
    facts,
    number_column,
    table,
    text_column,
)
from gpucourse.ui.text import hourly, usd
from gpucourse.ui.views.outlook import clock

if TYPE_CHECKING:
    from gpucourse.aws.money import BilledCost
    from gpucourse.labs.aws.cost import Cost, Running
    from gpucourse.labs.aws.cost import CostPart as Share


def cost(costs: Cost) -> View:
    """Show the sums, what costs money now, the costs by module and exercise, and the sources of the prices."""
    warnings = Items(costs.warnings, title="Warnings", style="warn")
    if not costs.usd and not costs.running and not costs.billed:
        free = Paragraph("No costs so far: simulated nodes are free.")
        return View(blocks=[*_show_clusters(costs), warnings] if costs.clusters else [free, warnings])
    blocks: list[Block] = [
        _sums(costs),
        _show_running(costs.running),
        _shares("By module", costs.modules),
        _shares("By exercise", costs.exercises),
        _shares("By kind", costs.kinds),
        *_show_clusters(costs),
        *([_bill(costs.billed)] if costs.billed else []),
        warnings,
        Items(costs.sources, title="Prices", style="dim"),
    ]
    ask = "An estimate from list prices. What AWS billed ($0.01 per request): gpucourse cost --billed"
    return View(blocks=blocks, footer=[] if costs.billed else [ask])


def _show_clusters(costs: Cost) -> list[Block]:
    """Return the hours of runs on Slurm clusters, and the limit on them."""
    if not costs.clusters:
        return []
    rows = [
        (
            lab.stack,
            str(lab.runs),
            f"{lab.cpu_hours:.2f}",
            f"{lab.gpu_hours:.2f}",
            f"{lab.reserved_gpu_hours:.2f}",
            str(lab.unknown) if lab.unknown else "",
        )
        for lab in costs.clusters
    ]
    columns: list[Column | str] = [
        "lab",
        number_column("runs"),
        number_column("core hours"),
        number_column("GPU hours"),
        number_column("still reserved"),
        number_column("unknown"),
    ]
    used = sum(lab.gpu_hours + lab.reserved_gpu_hours for lab in costs.clusters)
    limit = "none set (max_gpu_hours in gpucourse.yaml)" if costs.max_gpu_hours is None else f"{costs.max_gpu_hours:g}"
    return [
        table(columns, rows, title="On Slurm clusters"),
        facts([("GPU hours", f"{used:.2f} used or reserved; the limit: {limit}")]),
    ]


def _sums(costs: Cost) -> Facts:
    remaining = costs.left_usd
    budget = None
    if remaining is not None and costs.budget_usd is not None:
        short = remaining < 0 or costs.usd_to_end > costs.budget_usd
        words = (
            f"{usd(remaining)} left of {usd(costs.budget_usd)}"
            if remaining >= 0
            else f"{usd(-remaining)} above {usd(costs.budget_usd)}"
        )
        budget = Cell(words + ("; not enough until the deadline" if short and remaining >= 0 else ""), "warn" if short else "")
    return facts(
        [
            ("so far", f"about {usd(costs.usd)}"),
            ("now", hourly(costs.usd_per_hour) if costs.running else "nothing: no lab is running"),
            (
                "until all end",
                f"about {usd(costs.usd_to_end)} in all, if every lab runs until its deadline" if costs.running else "",
            ),
            ("budget", budget or "none set (budget_usd in gpucourse.yaml)"),
        ]
    )


def _show_running(labs: Sequence[Running]) -> Table:
    rows = [
        (
            lab.stack,
            usd(lab.usd_per_hour),
            usd(lab.usd),
            "not known" if lab.usd_to_end is None else usd(lab.usd_to_end),
            clock(lab.expires) if lab.expires else Cell("no record: gpucourse leaks", "bad"),
        )
        for lab in labs
    ]
    return table(
        ["stack", number_column("an hour"), number_column("so far"), number_column("until it ends"), "ends at"],
        rows,
        title="What costs money now",
    )


def _shares(title: str, shares: Sequence[Share]) -> Table:
    timed = any(share.hours is not None for share in shares)
    rows = [
        (f"{share.name} {share.title}".strip(), usd(share.usd), *([f"{share.hours:.2f} h"] if share.hours is not None else []))
        for share in shares
    ]
    return table(["", number_column("cost"), *([number_column("used")] if timed else [])], rows, title=title)


def _bill(bill: BilledCost) -> Table:
    rows = [(name, usd(amount)) for name, amount in bill.services] or [
        ("nothing yet: bills are a day late, and the tag Project must be a cost allocation tag", "")
    ]
    final = "" if bill.final else ", not final"
    title = f"Billed by AWS from {bill.first} until {bill.until}{final}: {usd(bill.usd)}"
    return table([text_column("service"), number_column("USD")], rows, title=title)
