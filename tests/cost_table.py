"""Generate the tables of two pages. The costs of labs (docs/cost-and-safety.md) come from the manifests and the shipped prices;
the syllabus (README.md) comes from the manifests and the rubric.

`python -m tests.cost_table --write` writes both into their pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from gpucourse.aws.money import PriceBook, estimate, usd_per_hour
from gpucourse.course.rubric import parts_of, read_rubric
from gpucourse.labs.aws.choice import needs
from gpucourse.model.launching import USUAL, advised_extra
from gpucourse.model.manifest import Module
from gpucourse.model.rubric import RubricPart
from tests.course import CATALOG, FOLDERS

ROOT = Path(__file__).parent.parent
PAGE, README = ROOT / "docs" / "cost-and-safety.md", ROOT / "README.md"
BEGIN, END = "<!-- worked out: python -m tests.cost_table --write -->", "<!-- end -->"
REGION = "us-east-2"


def table() -> str:
    """Return the table in Markdown, with the day of the prices below it."""
    book = PriceBook(region=REGION)
    lines = ["| module | machines | $/h on demand | $/h spot | hours | $ on demand | $ spot |", "|---|---|--:|--:|--:|--:|--:|"]
    sums = [Decimal(0), Decimal(0)]
    days: set[str] = set()
    for need in needs(CATALOG):
        machines = " + ".join(f"{item.count} x {item.instance_type}" for item in need.machines)
        estimates = [estimate(book, need, market="on-demand"), estimate(book, need, market="spot")]
        rates = " | ".join(f"{usd_per_hour(item):.2f}" for item in estimates)
        whole = [usd_per_hour(item) * need.hours for item in estimates]
        sums = [total + cost for total, cost in zip(sums, whole, strict=True)]
        costs = " | ".join(f"{item:.2f}" for item in whole)
        lines.append(f"| {need.module} {need.title} | {machines} | {rates} | {need.hours.normalize():f} | {costs} |")
        days |= {line.rate.date for line in estimates[0]}
    lines.append(f"| total | | | | | {sums[0]:.2f} | {sums[1]:.2f} |")
    return "\n".join([*lines, "", f"Region {REGION}; the oldest of these prices is from {min(days)}."])


def syllabus() -> str:
    """Return the syllabus in Markdown: each module with its lesson, its subject and its figures. The points are those of the
    rubric.
    """
    modules = CATALOG.modules
    points = {part.module: part for part in parts_of(read_rubric(FOLDERS.modules), modules)}
    lines = ["| module | what it is about | exercises | hours | points | nodes | needs |", "|---|---|--:|--:|--:|--:|---|"]
    lines += [_describe_module(module, points.get(module.id)) for module in modules]
    course = sum(part.points for part in points.values() if part.counts == "course")
    exercises, hours = sum(len(module.exercises) for module in modules), sum(module.hours for module in modules)
    return "\n".join([*lines, f"| total | | {exercises} | {hours:g} | {course:g} | | |"])


def _describe_module(module: Module, part: RubricPart | None) -> str:
    (manifest,) = ROOT.glob(f"modules/{'0' * module.id.isdigit()}{module.id}-*/module.yaml")
    lesson = (manifest.parent / module.lesson).relative_to(ROOT).as_posix()
    about = re.split(r"\. |: |\.$", module.summary)[0]
    points = f"{part.points:g}{' bonus' * (part.counts == 'bonus')}" if part else "–"
    nodes = f"{module.lab.local.nodes}{' + head' if module.lab.scheduler == 'slurm' else ''}"
    needs = ", ".join(_list_needs(module)) or "–"
    start = f"| [{module.id} {module.title}]({lesson}) | {about} | {len(module.exercises)} "
    return f"{start}| {module.hours:g} | {points} | {nodes} | {needs} |"


def _list_needs(module: Module) -> Iterator[str]:
    """Yield the modules to do first, and what the exercises of a module need in addition to the extra `[local]`."""
    yield from (f"module {number}" for number in module.needs)
    if module.lab.scheduler == "slurm":
        yield "[Slurm](docs/troubleshooting.md#slurm)"
    programs = [f"`{program}`" for exercise in module.exercises for program in exercise.programs]
    extras = {advised_extra(name) for exercise in module.exercises for name in exercise.packages} - {USUAL}
    yield from dict.fromkeys([*programs, *(f"[`[{extra}]`](docs/install.md)" for extra in sorted(extras))])


def page_with(table: str, page: Path = PAGE) -> str:
    """Return the page, with this table in it."""
    text = page.read_text(encoding="utf-8")
    head, _, remainder = text.partition(BEGIN)
    return f"{head}{BEGIN}\n{table}\n{END}{remainder.partition(END)[2]}"


if __name__ == "__main__":
    pages = {PAGE: page_with(table()), README: page_with(syllabus(), README)}
    if "--write" in sys.argv:
        for page, text in pages.items():
            page.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(f"{table()}\n\n{syllabus()}\n")
