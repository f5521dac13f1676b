"""Checks on the screen: those of one run, and all exercises after `check --all`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.node import SIMULATED, is_simulated
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, Paragraph, View, table
from gpucourse.ui.views.course import VERDICTS

if TYPE_CHECKING:
    from gpucourse.learning.check import Recheck


def checks(verdict: ExerciseVerdict) -> list[Block]:
    """The checks of a run with their marks, hints for what did not pass, and the word that sums them up."""
    if not verdict.checks:
        return []
    columns: list[Column | str] = ["", Column("check", wrap=True), Column("observed", wrap=True), Column("expected", wrap=True)]
    columns.append("evidence")
    blocks: list[Block] = [table(columns, [_check(check) for check in verdict.checks], title="Checks")]
    hints = tuple((check.title, check.hint) for check in verdict.checks if check.verdict in {"failed", "error"} and check.hint)
    if hints:
        blocks.append(Facts(hints, title="Where to look"))
    blocks.append(Paragraph(_summary(verdict), VERDICTS.get(verdict.verdict, "dim")))
    return blocks


def verdict(verdict: ExerciseVerdict, yours: Sequence[Block] = ()) -> View:
    """A verdict by itself, for `check`; `yours`: what is shown of the learner's own parts."""
    title = f"{verdict.exercise}  run {verdict.run}"
    blocks = checks(verdict) or [Paragraph("This exercise has no checks.")]
    return View(title=title, blocks=(*blocks, *yours), mode=verdict.mode)


def every(rechecks: Sequence[Recheck]) -> View:
    """Every exercise with what it is worth now, what it was before, and where to look."""
    columns: list[Column | str] = [
        Column("", style="strong"), Column("exercise", wrap=True), "now", "before", Column("what is wrong", wrap=True)
    ]  # fmt: skip
    blocks: list[Block] = [table(columns, [_row(recheck) for recheck in rechecks], title="Every exercise, checked again")]
    hints = tuple(
        (f"{recheck.exercise} {check.id}", check.hint)
        for recheck in rechecks
        if recheck.verdict
        for check in recheck.verdict.checks
        if check.verdict in {"failed", "error"} and check.hint
    )
    if hints:
        blocks.append(Facts(hints, title="Where to look"))
    passed = sum(recheck.verdict is not None and recheck.verdict.verdict == "passed" for recheck in rechecks)
    lost = [recheck.exercise for recheck in rechecks if recheck.has_regressed]
    footer = [f"{passed} of {len(rechecks)} exercises pass."]
    footer += [f"No longer passed: {', '.join(lost)}"] if lost else []
    modes = {recheck.verdict.mode for recheck in rechecks if recheck.verdict}
    return View(blocks=tuple(blocks), footer=tuple(footer), mode=SIMULATED if SIMULATED in modes else "")


def _row(recheck: Recheck) -> tuple[Content, ...]:
    if recheck.verdict is None:
        return recheck.exercise, recheck.title, Cell("not yet", "dim"), "", ""
    word = recheck.verdict.verdict
    bad = [check for check in recheck.verdict.checks if check.verdict in {"failed", "error"}]
    wrong = "; ".join(f"{check.id}: {check.observed}" for check in bad)
    missing = f"not in deliverables/: {', '.join(recheck.missing)}" if recheck.missing and word == "passed" else ""
    before = "" if recheck.before is None or recheck.before == word else recheck.before.replace("_", " ")
    now = Cell(f"{UNICODE.mark(word)} {word.replace('_', ' ')}", VERDICTS.get(word, "dim"))
    return recheck.exercise, recheck.title, now, Cell(before, "dim"), wrong or missing


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


def _summary(verdict: ExerciseVerdict) -> str:
    words = [check.verdict for check in verdict.checks]
    counted = ", ".join(
        f"{words.count(word)} {word.replace('_', ' ')}"
        for word in ("passed", "failed", "error", "not_measured")
        if word in words
    )
    where = " on simulated nodes" if is_simulated(verdict.mode) else ""
    return f"{UNICODE.mark(verdict.verdict)} {verdict.verdict.replace('_', ' ')}{where}: {counted}"
