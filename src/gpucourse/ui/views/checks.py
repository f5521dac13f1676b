"""All exercises after `check --all`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Column, Content, Facts, Part, View, table
from gpucourse.ui.views.course import VERDICTS

if TYPE_CHECKING:
    from gpucourse.actions.recheck import Rechecked


def every(found: Sequence[Rechecked]) -> View:
    """Every exercise with what it is worth now, what it was before, and where to look."""
    columns: list[Column | str] = [
        Column("", style="strong"), Column("exercise", wrap=True), "now", "before", Column("what is wrong", wrap=True)
    ]  # fmt: skip
    parts: list[Part] = [table(columns, [_row(each) for each in found], title="Every exercise, verified again")]
    hints = tuple(
        (f"{each.exercise} {check.id}", check.hint)
        for each in found
        if each.verdict
        for check in each.verdict.checks
        if check.verdict in {"failed", "error"} and check.hint
    )
    if hints:
        parts.append(Facts(hints, title="Where to look"))
    passed = sum(each.verdict is not None and each.verdict.verdict == "passed" for each in found)
    lost = [each.exercise for each in found if each.regressed]
    footer = [f"{passed} of {len(found)} exercises hold."]
    footer += [f"No longer passed: {', '.join(lost)}"] if lost else []
    modes = {each.verdict.mode for each in found if each.verdict}
    return View(parts=tuple(parts), footer=tuple(footer), mode="local" if "local" in modes else "")


def _row(each: Rechecked) -> tuple[Content, ...]:
    if each.verdict is None:
        return each.exercise, each.title, Cell("not yet", "dim"), "", ""
    word = each.verdict.verdict
    bad = [check for check in each.verdict.checks if check.verdict in {"failed", "error"}]
    wrong = "; ".join(f"{check.id}: {check.observed}" for check in bad)
    missing = f"not in deliverables/: {', '.join(each.missing)}" if each.missing and word == "passed" else ""
    before = "" if each.before is None or each.before == word else each.before.replace("_", " ")
    now = Cell(f"{UNICODE.mark(word)} {word.replace('_', ' ')}", VERDICTS.get(word, "dim"))
    return each.exercise, each.title, now, Cell(before, "dim"), wrong or missing
