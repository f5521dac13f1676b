"""Checks on the screen: the checks of one run, and all exercises after `check --all`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gpucourse.model.node import SIMULATED
from gpucourse.model.verdict import CheckResult, ExerciseVerdict
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Cell, Column, Content, Facts, Table, View, facts, name_column, table, text_column
from gpucourse.ui.text import format_count
from gpucourse.ui.views.words import VERDICTS, name_evidence, name_evidence_value, verdict_cell

Detail = Literal["names", "counts", "failed"]
"""How checks that were not measured are listed: by name, counted by reason, or not at all."""

MAX_FAILED = 3  # checks that did not pass, with their hints; more are counted
MAX_UNMEASURED = 3  # checks that need a GPU, named; more are counted
_SOURCE = re.compile(r" \(((?:\w+\()?(?:metrics|plan|run)\.[\w.-]+\)?)\)$")  # the source in `2 ranks (plan.world_size)`

if TYPE_CHECKING:
    from gpucourse.learning.check import Recheck


def checks(verdict: ExerciseVerdict) -> tuple[Table, Facts]:
    """Return the checks of a run with their signs, and hints for those that did not pass."""
    columns: list[Column | str] = ["", text_column("check"), text_column("observed"), text_column("expected"), "counts on"]
    hints = [(check.title, check.hint) for check in _list_failed(verdict)]
    return table(columns, map(_check, verdict.checks), title="Checks"), facts(hints, title="Where to look")


def list_open_checks(verdict: ExerciseVerdict, detail: Detail = "names") -> list[Cell]:
    """Return a line for each check that did not pass, with its hint, and lines about the checks that were not measured.

    With `counts`, all checks that were not measured for the same reason share one line. With `failed`, they have no line.
    """
    lines = list_failed_checks(verdict, MAX_FAILED)
    unmeasured = [check for check in verdict.checks if check.verdict == "not_measured"] if detail != "failed" else []
    if detail == "counts":
        reasons = Counter(map(_find_reason, unmeasured)).most_common()
        texts = [(f"{format_count(count, 'check')} not measured: {reason}", count) for reason, count in reasons]
    else:
        texts = [(f"{check.title}: not measured, {_find_reason(check)}", 1) for check in unmeasured]
    shown_texts = texts if len(texts) <= MAX_UNMEASURED else texts[: MAX_UNMEASURED - 1]
    unnamed_count = len(unmeasured) - sum(count for _, count in shown_texts)
    remainder = [f"and {unnamed_count} more {'was' if unnamed_count == 1 else 'were'} not measured"] if unnamed_count else []
    return lines + [Cell(f"{UNICODE.absent} {text}", "dim") for text in [*(text for text, _ in shown_texts), *remainder]]


def _list_failed(verdict: ExerciseVerdict) -> list[CheckResult]:
    """Return the checks that did not pass."""
    return [check for check in verdict.checks if check.verdict in {"failed", "error"}]


def _find_reason(check: CheckResult) -> str:
    """Return why a check was not measured."""
    return check.observed.removeprefix("not measured").removeprefix(": ") or "needs a GPU"


def list_failed_checks(verdict: ExerciseVerdict, limit: int) -> list[Cell]:
    """Return a line for each of the first `limit` checks that did not pass, with its hint, and the number of the other failed
    checks."""
    lines: list[Cell] = []
    failed_checks = _list_failed(verdict)
    for check in failed_checks[:limit]:
        expectation = _describe_expected(check)
        text = f"{UNICODE.mark(check.verdict)} {check.title}: {check.observed}; expected {expectation} [{check.id}]"
        lines += [Cell(text, VERDICTS[check.verdict]), *([Cell(f"  {check.hint}")] if check.hint else [])]
    if len(failed_checks) > limit:
        lines.append(Cell(f"{UNICODE.bad} and {len(failed_checks) - limit} more did not pass", "bad"))
    return lines


def _describe_expected(check: CheckResult) -> str:
    """Return the value that a check expects. If that value is itself a value of the run, add its name in words."""
    return _SOURCE.sub(lambda match: f" ({name_evidence_value(match[1])})", check.expected)


def rechecked_exercises(rechecks: Sequence[Recheck]) -> View:
    """Show every exercise with its current and its earlier verdict, and with hints for the checks that failed."""
    columns: list[Column | str] = [name_column(""), text_column("exercise"), "now", "before", text_column("what is wrong")]
    verdicts = [(recheck.exercise, recheck.verdict) for recheck in rechecks if recheck.verdict]
    hints = [(f"{number} {check.id}", check.hint) for number, verdict in verdicts for check in _list_failed(verdict)]
    pass_count = sum(verdict.verdict == "passed" for _, verdict in verdicts)
    regressions = [recheck.exercise for recheck in rechecks if recheck.has_regressed]
    return View(
        blocks=[
            table(columns, map(_row, rechecks), title="Every exercise, checked again"),
            facts(hints, title="Where to look"),
        ],
        footer=[
            f"{pass_count} of {len(rechecks)} exercises pass.",
            *([f"No longer passing: {', '.join(regressions)}"] if regressions else []),
        ],
        mode=SIMULATED if any(verdict.mode == SIMULATED for _, verdict in verdicts) else "",
    )


def _row(recheck: Recheck) -> tuple[Content, ...]:
    if recheck.verdict is None:
        return recheck.exercise, recheck.title, Cell("not yet", "dim"), "", ""
    word = recheck.verdict.verdict
    failures = "; ".join(f"{check.id}: {check.observed}" for check in _list_failed(recheck.verdict))
    missing = f"not in deliverables/: {', '.join(recheck.missing)}" if recheck.missing and word == "passed" else ""
    old_word = "" if recheck.before is None or recheck.before == word else recheck.before.replace("_", " ")
    return recheck.exercise, recheck.title, verdict_cell(word), Cell(old_word, "dim"), failures or missing


def _check(check: CheckResult) -> tuple[Content, ...]:
    style = VERDICTS.get(check.verdict, "dim")
    observed = check.observed
    if check.verdict == "not_measured":
        observed = observed or "not measured: needs a GPU"
    return (
        Cell(UNICODE.mark(check.verdict), style),
        check.title,
        Cell(observed, "" if style == "good" else style),
        _describe_expected(check),
        Cell(name_evidence(check.evidence), "dim"),
    )
