"""The table of docs/grading.md that is generated from the manifests: which values are compared with what ranks print.

`python -m tests.log_table --write` puts it into the page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from gpucourse.model.check import Check, LogEvidence
from gpucourse.model.fields import EXPRESSION

PAGE = Path(__file__).parent.parent / "docs" / "grading.md"
BEGIN, END = "<!-- worked out: python -m tests.log_table --write -->", "<!-- end -->"


def is_printed(check: Check, entries: tuple[LogEvidence, ...]) -> bool:
    """Whether the value that a check reads stands in a log: a key of rows that are printed, or how many rows there are."""
    match = EXPRESSION.match(check.value)
    path = match["path"] if match else ""
    for entry in entries:
        rows = entry.rows or "metrics"
        if path == rows or any(f"{rows}.{key}" == path for key in entry.keys):
            return True
    return False


def describe(entry: LogEvidence) -> str:
    """What an entry compares: the rows and their keys."""
    rows = f"`{entry.rows.removeprefix('metrics.')}`: " if entry.rows else ""
    ways = f", {', '.join(entry.over_ranks.values())} over ranks" if entry.over_ranks else ""
    return f"{rows}{', '.join(entry.keys)}{ways}{', by every rank' if entry.every_rank else ''}"


def make_table() -> str:
    """The table in Markdown."""
    lines = ["| exercise | compared with the logs | checks that read them |", "|---|---|--:|"]
    for module in load(find_course({})).modules:
        for exercise in module.exercises:
            checks = [check for check in exercise.checks if check.evidence == "logic" and "metrics." in check.value]
            printed = sum(is_printed(check, exercise.logs) for check in checks)
            compared = "; ".join(describe(entry) for entry in exercise.logs)
            lines.append(f"| {exercise.id} | {compared} | {printed} of {len(checks)} |")
    return "\n".join(lines)


def make_page(table: str) -> str:
    """The page with this table in its place."""
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:begin]}\n{table}\n{text[end:]}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(make_page(make_table()), encoding="utf-8")
    else:
        sys.stdout.write(make_table() + "\n")
