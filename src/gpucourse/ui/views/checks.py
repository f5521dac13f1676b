"""Checks on the screen: those of one run, and all exercises after `check --all`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.node import SIMULATED, is_simulated
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Column, Content, Facts, Paragraph, Part, View, table
from gpucourse.ui.views.course import VERDICTS

if TYPE_CHECKING:
    from gpucourse.learning.check import Rechecked


def checks(verdict: ExerciseVerdict) -> list[Part]:
    """The checks of a run with their marks, hints for what did not pass, and the word that sums them up."""
    if not verdict.checks:
        return []
    columns: list[Column | str] = ["", Column("check", wrap=True), Column("observed", wrap=True), Column("expected", wrap=True)]
    columns.append("evidence")
    parts: list[Part] = [table(columns, [_check(each) for each in verdict.checks], title="Checks")]
    hints = tuple((each.title, each.hint) for each in verdict.checks if each.verdict in {"failed", "error"} and each.hint)
    if hints:
        parts.append(Facts(hints, title="Where to look"))
    parts.append(Paragraph(_summed(verdict), VERDICTS.get(verdict.verdict, "dim")))
    return parts


def verdict(verdict: ExerciseVerdict) -> View:
    """A verdict by itself, for `check`."""
    title = f"{verdict.exercise}  run {verdict.run}"
    parts = checks(verdict) or [Paragraph("This exercise has no checks.")]
    return View(title=title, parts=tuple(parts), mode=verdict.mode)


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
    return View(parts=tuple(parts), footer=tuple(footer), mode=SIMULATED if SIMULATED in modes else "")


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


def _check(check: CheckResult) -> tuple[Content, ...]:
    style = VERDICTS.get(check.verdict, "dim")
    observed = check.observed
    if check.verdict == "not_measured":
        observed = observed or "not measured: needs a GPU"
    return (
        Cell(UNICODE.mark(check.verdict), style),
        check.title,
        Cell(observed, "" if style == "good" else style),
        check.expected,
        Cell(check.evidence, "dim"),
    )


def _summed(verdict: ExerciseVerdict) -> str:
    words = [each.verdict for each in verdict.checks]
    counted = ", ".join(
        f"{words.count(word)} {word.replace('_', ' ')}"
        for word in ("passed", "failed", "error", "not_measured")
        if word in words
    )
    where = " on simulated nodes" if is_simulated(verdict.mode) else ""
    return f"{UNICODE.mark(verdict.verdict)} {verdict.verdict.replace('_', ' ')}{where}: {counted}"
