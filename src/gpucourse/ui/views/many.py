"""Several runs in one command, on the screen: a sweep, and a whole module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.node import SIMULATED
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Table, View, facts, name_column, number_column, table, text_column
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.ui.views.words import verdict_cell
from gpucourse.units import format_seconds

if TYPE_CHECKING:
    from gpucourse.model.sweep import Sweep
    from gpucourse.model.verdict import Rehearsal
    from gpucourse.runs.parameter_sweep import SweepResult
    from gpucourse.runs.run_module import ExerciseRun

EVERY_VALUE = "Every value"
"""The title of a sweep's table when the table only lists the sweep's points."""


def sweep(result: SweepResult, *, whole: bool = False) -> View:
    """Show the table over all values, and the folder of the plot. With `whole`, also show every value with its run, and every
    file."""
    record = result.sweep
    rows = [
        (str(point.value), point.state, verdict_cell(point.verdict), _show(point.seconds), point.run or point.error)
        for point in record.points
    ]
    blocks: list[Block] = []
    if whole:
        blocks.append(table([number_column(record.parameter), "state", "checks", number_column("took"), "run"], rows))
    if record.title != EVERY_VALUE:
        blocks.append(sweep_table(record))
    files = [("file" if result.own_script else "deliverable", str(path)) for path in result.files] if whole else []
    blocks.append(facts([("saved in", shorten_path(result.folder)), *files]))
    good_count = sum(point.state == "succeeded" and point.verdict not in {"failed", "error"} for point in record.points)
    count_text = f"{good_count} of {format_count(len(record.points), 'value')} of {record.parameter} passed"
    is_good = good_count == len(record.points)
    runs = [point.run for point in record.points if point.run]
    return View(
        title=f"{result.own_script or record.exercise}  by {record.parameter}",
        headline=Cell(f"{UNICODE.good if is_good else UNICODE.bad} {count_text}", "good" if is_good else "bad"),
        blocks=blocks,
        mode=record.mode or "",
        footer=_compare(runs),
    )


def sweep_table(sweep: Sweep) -> Table:
    """Return what was measured at each value of a sweep."""
    columns = [
        Column(title, align="right" if numeric or number == 0 else "left", wrap=not numeric, spare=_is_spread(title))
        for number, (title, numeric) in enumerate(zip(sweep.columns, sweep.numeric, strict=True))
    ]
    return table(columns, sweep.rows, title=sweep.title)


def module_runs(steps: Sequence[ExerciseRun]) -> View:
    """Show how every exercise went on every lab."""
    columns: list[Column | str] = [
        name_column(""),
        text_column("exercise"),
        "lab",
        "state",
        "checks",
        number_column("took"),
        "run",
    ]
    rows: list[tuple[Content, ...]] = []
    for step in steps:
        took, run = _show(step.seconds), step.run or UNICODE.absent
        rows.append((step.exercise, step.title, step.lab, step.state, verdict_cell(step.verdict), took, run))
    errors = [(f"{step.exercise} on {step.lab}", Cell(step.error, "bad")) for step in steps]
    by_exercise: dict[str, list[str]] = {}
    for step in steps:
        if step.run:
            by_exercise.setdefault(step.exercise, []).append(step.run)
    pair = next((step_runs for step_runs in by_exercise.values() if len(step_runs) > 1), [])
    return View(
        blocks=[table(columns, rows), facts(errors, title="What went wrong")],
        footer=[*_compare(pair), "Points: gpucourse grade. The report: gpucourse report"],
        mode=SIMULATED if any(step.mode == SIMULATED for step in steps) else "",
    )


def rehearsals(results: Sequence[Rehearsal]) -> View:
    """Show the result of every exercise that an author's `dev check --run` has run."""
    rows: list[tuple[Content, ...]] = [
        (
            rehearsal.exercise,
            verdict_cell(rehearsal.verdict),
            _show(rehearsal.seconds),
            Cell(f"skipped: {rehearsal.skipped}", "warn") if rehearsal.skipped else "; ".join(rehearsal.complaints),
        )
        for rehearsal in results
    ]
    title = "Every exercise on simulated nodes"
    return View(
        blocks=[table([name_column(""), "checks", number_column("took"), text_column("")], rows, title=title)], mode=SIMULATED
    )


def _compare(runs: Sequence[str]) -> list[str]:
    """Return the command that shows the first two runs side by side, if there are two."""
    return [f"Side by side: gpucourse compare {' '.join(runs[:2])}"] if len(runs) > 1 else []


def _show(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds)


def _is_spread(title: str) -> bool:
    """Return whether a column has percentiles; these columns are dropped first if the terminal is narrow."""
    return re.search(r"\bp[28]0\b", title) is not None
