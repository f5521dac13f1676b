"""Checks on the screen: those of one run, and all exercises after `check --all`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.node import SIMULATED
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, View, table
from gpucourse.ui.text import format_count
from gpucourse.ui.views.course import VERDICTS, name_evidence

FAILED = 3  # checks that did not pass, with their hints; more are counted
UNMEASURED = 3  # checks that need a GPU, named; more are counted

if TYPE_CHECKING:
    from gpucourse.learning.check import Recheck


def checks(verdict: ExerciseVerdict) -> list[Block]:
    """Return the checks of a run with their marks, and hints for what did not pass; nothing if there are none."""
    if not verdict.checks:
        return []
    columns: list[Column | str] = ["", Column("check", wrap=True), Column("observed", wrap=True), Column("expected", wrap=True)]
    columns.append("counts on")
    blocks: list[Block] = [table(columns, [_check(check) for check in verdict.checks], title="Checks")]
    hints = tuple((check.title, check.hint) for check in verdict.checks if check.verdict in {"failed", "error"} and check.hint)
    if hints:
        blocks.append(Facts(hints, title="Where to look"))
    return blocks


def list_open_checks(verdict: ExerciseVerdict, *, brief: bool = False) -> list[Cell]:
    """Return a line for each check that did not pass, with its hint, and for some that were not measured; if `brief`, one line
    for all checks that were not measured for the same reason."""
    lines = list_failed_checks(verdict, FAILED)
    unmeasured = [check for check in verdict.checks if check.verdict == "not_measured"]
    if brief:
        reasons = Counter(map(_find_reason, unmeasured))
        shown_reasons = reasons.most_common(None if len(reasons) <= UNMEASURED else UNMEASURED - 1)
        lines += [
            Cell(f"{UNICODE.absent} {format_count(count, 'check')} not measured: {reason}", "dim")
            for reason, count in shown_reasons
        ]
        return lines + _count_rest(len(unmeasured) - sum(count for _, count in shown_reasons))
    named_checks = unmeasured if len(unmeasured) <= UNMEASURED else unmeasured[: UNMEASURED - 1]
    lines += [Cell(f"{UNICODE.absent} {check.title}: not measured, {_find_reason(check)}", "dim") for check in named_checks]
    return lines + _count_rest(len(unmeasured) - len(named_checks))


def _count_rest(count: int) -> list[Cell]:
    """Return a line that counts the checks that were not measured and are not named; nothing if there are none."""
    return [Cell(f"{UNICODE.absent} and {count} more {'was' if count == 1 else 'were'} not measured", "dim")] if count else []


def _find_reason(check: CheckResult) -> str:
    """Return why a check was not measured."""
    return check.observed.removeprefix("not measured").removeprefix(": ") or "needs a GPU"


def list_failed_checks(verdict: ExerciseVerdict, most: int) -> list[Cell]:
    """Return a line for each of the first checks that did not pass, with its hint, and the number of the others."""
    lines: list[Cell] = []
    bad = [check for check in verdict.checks if check.verdict in {"failed", "error"}]
    for check in bad[:most]:
        text = f"{UNICODE.mark(check.verdict)} {check.title}: {check.observed}; expected {check.expected} [{check.id}]"
        lines += [Cell(text, VERDICTS[check.verdict]), *([Cell(f"  {check.hint}")] if check.hint else [])]
    if len(bad) > most:
        lines.append(Cell(f"{UNICODE.bad} and {len(bad) - most} more did not pass", "bad"))
    return lines


def count_checks(verdict: ExerciseVerdict) -> str:
    """Return how many checks have each verdict: `7 passed, 1 not measured`."""
    words = [check.verdict for check in verdict.checks]
    counts = [
        f"{words.count(word)} {word.replace('_', ' ')}"
        for word in ("passed", "failed", "error", "not_measured")
        if word in words
    ]
    return ", ".join(counts) or "no checks"


def every(rechecks: Sequence[Recheck]) -> View:
    """Show every exercise with its verdict now, its verdict before, and where to look."""
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
    regressions = [recheck.exercise for recheck in rechecks if recheck.has_regressed]
    footer = [f"{passed} of {len(rechecks)} exercises pass."]
    footer += [f"No longer passed: {', '.join(regressions)}"] if regressions else []
    modes = {recheck.verdict.mode for recheck in rechecks if recheck.verdict}
    return View(blocks=tuple(blocks), footer=tuple(footer), mode=SIMULATED if SIMULATED in modes else "")


def _row(recheck: Recheck) -> tuple[Content, ...]:
    if recheck.verdict is None:
        return recheck.exercise, recheck.title, Cell("not yet", "dim"), "", ""
    word = recheck.verdict.verdict
    bad = [check for check in recheck.verdict.checks if check.verdict in {"failed", "error"}]
    wrong = "; ".join(f"{check.id}: {check.observed}" for check in bad)
    missing = f"not in deliverables/: {', '.join(recheck.missing)}" if recheck.missing and word == "passed" else ""
    old_word = "" if recheck.before is None or recheck.before == word else recheck.before.replace("_", " ")
    new_cell = Cell(f"{UNICODE.mark(word)} {word.replace('_', ' ')}", VERDICTS.get(word, "dim"))
    return recheck.exercise, recheck.title, new_cell, Cell(old_word, "dim"), wrong or missing


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
        Cell(name_evidence(check.evidence), "dim"),
    )
