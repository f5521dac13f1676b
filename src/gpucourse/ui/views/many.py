"""Several runs in one command, on the screen: a sweep, and a whole module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.node import SIMULATED
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, View, facts, table
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.ui.views.course import VERDICTS
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.model.verdict import Rehearsal
    from gpucourse.runs.parameter_sweep import SweepResult
    from gpucourse.runs.run_module import ExerciseRun


def sweep(result: SweepResult, *, whole: bool = False, next_step: str = "") -> View:
    """Show the table over all values, and where the plot is; `whole`: every value with its run and every file as well."""
    record = result.sweep
    columns: list[Column | str] = [
        Column(record.parameter, align="right"),
        "state",
        "checks",
        Column("took", align="right"),
        "run",
    ]
    rows = [
        (str(point.value), point.state, _word(point.verdict), _show(point.seconds), point.run or point.error)
        for point in record.points
    ]
    blocks: list[Block] = [table(columns, rows)] if whole else []
    if record.title != "Every value":
        titles: list[Column | str] = [
            Column(title, align="right" if numeric or number == 0 else "left", wrap=not numeric, spare=_is_spread(title))
            for number, (title, numeric) in enumerate(zip(record.columns, record.numeric, strict=True))
        ]
        blocks.append(table(titles, record.rows, title=record.title))
    files = [("file" if result.own_script else "deliverable", str(path)) for path in result.files] if whole else []
    blocks.append(facts([("saved in", shorten_path(result.folder)), *files]))
    good = sum(point.state == "succeeded" and point.verdict not in {"failed", "error"} for point in record.points)
    count_text = f"{good} of {format_count(len(record.points), 'value')} of {record.parameter} passed"
    is_good = good == len(record.points)
    runs = [point.run for point in record.points if point.run]
    return View(
        title=f"{result.own_script or record.exercise}  by {record.parameter}",
        headline=Cell(f"{UNICODE.good if is_good else UNICODE.bad} {count_text}", "good" if is_good else "bad"),
        blocks=tuple(blocks),
        mode=record.mode or "",
        footer=(f"Side by side: gpucourse compare {' '.join(runs[:2])}",) if len(runs) > 1 else (),
        next=next_step,
    )


def everything(steps: Sequence[ExerciseRun], next_step: str = "") -> View:
    """Show every exercise on every lab, and what to do with the runs."""
    columns: list[Column | str] = [Column("", style="strong"), Column("exercise", wrap=True), "lab", "state", "checks"]
    columns += [Column("took", align="right"), "run"]
    rows: list[tuple[Content, ...]] = [
        (step.exercise, step.title, step.lab, step.state, _word(step.verdict), _show(step.seconds), step.run or UNICODE.absent)
        for step in steps
    ]
    blocks: list[Block] = [table(columns, rows)]
    errors = tuple((f"{step.exercise} on {step.lab}", Cell(step.error, "bad")) for step in steps if step.error)
    if errors:
        blocks.append(Facts(errors, title="What went wrong"))
    by_exercise: dict[str, list[str]] = {}
    for step in steps:
        if step.run:
            by_exercise.setdefault(step.exercise, []).append(step.run)
    pair = next((step_runs for step_runs in by_exercise.values() if len(step_runs) > 1), None)
    footer = [f"Side by side: gpucourse compare {' '.join(pair)}"] if pair else []
    footer.append("Points: gpucourse grade. The report: gpucourse report")
    modes = {step.mode for step in steps}
    return View(blocks=tuple(blocks), footer=tuple(footer), mode=SIMULATED if SIMULATED in modes else "", next=next_step)


def rehearsals(results: Sequence[Rehearsal]) -> View:
    """Show every exercise as an author's check ran it."""
    columns: list[Column | str] = [Column("", style="strong"), "checks", Column("took", align="right"), Column("", wrap=True)]
    rows: list[tuple[Content, ...]] = [
        (
            rehearsal.exercise,
            _word(rehearsal.verdict),
            _show(rehearsal.seconds),
            Cell(f"skipped: {rehearsal.skipped}", "warn") if rehearsal.skipped else "; ".join(rehearsal.complaints),
        )
        for rehearsal in results
    ]
    return View(blocks=(table(columns, rows, title="Every exercise on simulated nodes"),), mode=SIMULATED)


def _word(verdict: str | None) -> Cell:
    if verdict is None:
        return Cell(UNICODE.absent, "dim")
    return Cell(f"{UNICODE.mark(verdict)} {verdict.replace('_', ' ')}", VERDICTS.get(verdict, "dim"))


def _show(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def _is_spread(title: str) -> bool:
    """Return whether a column has percentiles, which are dropped first if the terminal is narrow."""
    return re.search(r"\bp[28]0\b", title) is not None
