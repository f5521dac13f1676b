"""Where the money went, where it goes, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.tables import Block, Cell, Column, Facts, Items, Paragraph, Table, View, facts, table
from gpucourse.ui.text import hourly, usd
from gpucourse.ui.views.outlook import clock

if TYPE_CHECKING:
    from gpucourse.aws.money import BilledCost
    from gpucourse.labs.aws.cost import Cost, Running
    from gpucourse.labs.aws.cost import CostPart as Share


def cost(known: Cost) -> View:
    """Show the sums, what costs money now, the costs by module and exercise, and where the prices are from."""
    if not known.usd and not known.running and not known.billed:
        blocks: list[Block] = [Paragraph("Nothing has cost anything: simulated nodes are free.")]
        return View(blocks=(*blocks, *_warnings(known)), footer=("A lab that costs: gpucourse deploy 3 --target aws",))
    blocks = [_sums(known)]
    if known.running:
        blocks.append(_show_running(known.running))
    for title, shares in (("By module", known.modules), ("By exercise", known.exercises), ("By kind", known.kinds)):
        if shares:
            blocks.append(_shares(title, shares))
    if known.billed:
        blocks.append(_bill(known.billed))
    blocks += _warnings(known)
    if known.sources:
        blocks.append(Items(tuple(Cell(source, "dim") for source in known.sources), title="Prices"))
    ask = "An estimate from list prices. What AWS billed ($0.01 a request): gpucourse cost --billed"
    return View(blocks=tuple(blocks), footer=() if known.billed else (ask,))


def _sums(known: Cost) -> Facts:
    left = known.left_usd
    budget = None
    if left is not None and known.budget_usd is not None:
        short = left < 0 or known.usd_to_end > known.budget_usd
        words = f"{usd(left)} left of {usd(known.budget_usd)}" if left >= 0 else f"{usd(-left)} above {usd(known.budget_usd)}"
        budget = Cell(words + ("; not enough until the end" if short and left >= 0 else ""), "warn" if short else "")
    return facts(
        [
            ("so far", f"about {usd(known.usd)}"),
            ("now", hourly(known.usd_per_hour) if known.running else "nothing costs"),
            (
                "to the end",
                f"about {usd(known.usd_to_end)} in all, if every lab runs until its deadline" if known.running else "",
            ),
            ("budget", budget or "none set (budget_usd in gpucourse.yaml)"),
        ]
    )


def _show_running(labs: Sequence[Running]) -> Table:
    columns: list[Column | str] = [
        "stack",
        Column("an hour", align="right"),
        Column("so far", align="right"),
        Column("to its end", align="right"),
        "ends at",
    ]
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
    return table(columns, rows, title="What costs now")


def _shares(title: str, shares: Sequence[Share]) -> Table:
    timed = any(share.hours is not None for share in shares)
    columns: list[Column | str] = ["", Column("cost", align="right"), *([Column("used", align="right")] if timed else [])]
    rows = [
        (f"{share.name} {share.title}".strip(), usd(share.usd), *([f"{share.hours:.2f} h"] if share.hours is not None else []))
        for share in shares
    ]
    return table(columns, rows, title=title)


def _bill(bill: BilledCost) -> Table:
    rows = [(name, usd(amount)) for name, amount in bill.services] or [
        ("nothing yet: bills are a day late, and the tag Project must be a cost allocation tag", "")
    ]
    final = "" if bill.final else ", not final"
    title = f"Billed by AWS from {bill.first} until {bill.until}{final}: {usd(bill.usd)}"
    return table([Column("service", wrap=True), Column("USD", align="right")], rows, title=title)


def _warnings(known: Cost) -> list[Block]:
    return [Items(tuple(Cell(text, "warn") for text in known.warnings), title="Mind")] if known.warnings else []
