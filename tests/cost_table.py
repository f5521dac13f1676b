"""What the labs cost, worked out from the manifests and the shipped prices: the table of docs/cost-and-safety.md.

`python -m tests.cost_table --write` puts it there anew.
"""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

from gpucourse.aws.pricing import PriceBook, estimate
from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.labs.aws.needs import needs
from gpucourse.model.money import usd_per_hour

PAGE = Path(__file__).parent.parent / "docs" / "cost-and-safety.md"
BEGIN, END = "<!-- worked out: python -m tests.cost_table --write -->", "<!-- end -->"
REGION = "us-east-2"


def table() -> str:
    """The table in Markdown, with the day of the prices below it."""
    book = PriceBook(region=REGION)
    lines = ["| module | machines | $/h on demand | $/h spot | hours | $ on demand | $ spot |", "|---|---|--:|--:|--:|--:|--:|"]
    sums = [Decimal(0), Decimal(0)]
    days: set[str] = set()
    for need in needs(load(find_course({}))):
        machines = " + ".join(f"{item.count} x {item.instance_type}" for item in need.machines)
        estimates = [estimate(book, need, market="on-demand"), estimate(book, need, market="spot")]
        rates = " | ".join(f"{usd_per_hour(item):.2f}" for item in estimates)
        whole = [usd_per_hour(item) * need.hours for item in estimates]
        sums = [before + now for before, now in zip(sums, whole, strict=True)]
        costs = " | ".join(f"{item:.2f}" for item in whole)
        lines.append(f"| {need.module} {need.title} | {machines} | {rates} | {need.hours.normalize():f} | {costs} |")
        days |= {line.rate.date for line in estimates[0]}
    lines.append(f"| together | | | | | {sums[0]:.2f} | {sums[1]:.2f} |")
    return "\n".join([*lines, "", f"Region {REGION}; the oldest of these prices is of {min(days)}."])


def page_with(table: str) -> str:
    """The page, with this table in it."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    made = page_with(table())
    if "--write" in sys.argv:
        PAGE.write_text(made, encoding="utf-8")
    else:
        sys.stdout.write(table() + "\n")
