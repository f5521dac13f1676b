"""The keys that a script writes into its metrics, read from its source: every word in it that can be a key counts.

This finds a manifest that needs a key which no script writes, without running anything. It cannot prove the opposite: whether a
key is written in every case shows only when the exercise runs (`dev check --run`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpucourse.model.fields import EXPRESSION, is_evidence
from gpucourse.model.manifest import Exercise, Plot
from gpucourse.model.report_plan import SUBJECTS, ReportChapter

BY_PROGRAM = {"slurm", "session", "mode"}  # added by gpucourse itself: the scheduler's record of a run, a recorded session


@dataclass(frozen=True)
class MetricWords:
    """The words of some sources, and patterns for those that the script puts together when it runs."""

    exact: frozenset[str]
    patterns: tuple[re.Pattern[str], ...]

    def __contains__(self, key: str) -> bool:
        return key in self.exact or any(pattern.fullmatch(key) for pattern in self.patterns)


def words_of(sources: Iterable[Path]) -> MetricWords:
    """Return every word in the sources that can be a key: texts, names of keyword arguments and of fields. Other files are
    skipped."""
    exact: set[str] = set()
    patterns: set[str] = set()
    for path in sources:
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, OSError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                exact.add(node.value)
            elif isinstance(node, ast.keyword) and node.arg:
                exact.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                exact.add(node.target.id)
            elif isinstance(node, ast.JoinedStr) and (pattern := _pattern(node)):
                patterns.add(pattern)
    return MetricWords(frozenset(exact), tuple(map(re.compile, sorted(patterns))))


def list_exercise_paths(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield every path into the metrics that the manifest reads, with the place that reads it; also the keys of rows."""
    for check in exercise.checks:
        yield f"checks.{check.id}", check.value
        if isinstance(operand := check.comparison[1], str) and is_evidence(operand):
            yield f"checks.{check.id}", operand
    for question in exercise.questions:
        yield from ((f"questions.{question.id}", path) for path in question.reads)
    yield from (("predict", path) for path in (exercise.predict.reads if exercise.predict else ()))
    for table in exercise.tables:
        yield from ((f"tables.{table.title}", f"{table.rows}.{column.key}") for column in table.columns)
    for plot in exercise.plots:
        yield from ((f"plots.{plot.file}", path) for path in list_plot_paths(plot))


def list_chapter_paths(chapter: ReportChapter) -> Iterator[tuple[str, str]]:
    """Yield every path into the metrics that a chapter of the report reads, with the place that reads it."""
    yield from ((f"figures.{figure.id}", figure.value) for figure in chapter.figures)
    for plot in chapter.charts:
        yield from ((f"charts.{plot.file}", path) for path in list_plot_paths(plot) if not path.startswith(f"{SUBJECTS}."))


def list_plot_paths(plot: Plot) -> Iterator[str]:
    """Yield the path of every key that a plot shows."""
    keys = [plot.x, plot.by, plot.ideal_key, *(key for series in plot.series for key in (series.key, series.low, series.high))]
    yield from (f"{plot.rows}.{key}" for key in keys if key)


def find_unwritten(exercise: Exercise, words: MetricWords, asked: Iterable[tuple[str, str]] | None = None) -> Iterator[str]:
    """Yield what the manifest, or the paths in `asked`, reads from the metrics but no script writes, one line a place."""
    told: set[str] = set()
    names = {parameter.name for parameter in exercise.parameters}  # scripts write all of them, with the values of the run
    for place, expression in list_exercise_paths(exercise) if asked is None else asked:
        match = EXPRESSION.match(expression)
        steps = match["path"].split(".") if match else []
        if not steps or steps[0] != "metrics" or steps[1] in BY_PROGRAM:
            continue
        for step in steps[1:]:
            line = f"{exercise.id}.{place}: no script of {exercise.id} writes {step}, which {'.'.join(steps)} needs"
            if not (step.isdigit() or step in names or step in words or line in told):
                told.add(line)
                yield line


def _pattern(node: ast.JoinedStr) -> str:
    """Return a regular expression for a text with placeholders; empty if no letter of it is fixed."""
    parts = [
        re.escape(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else "[a-z0-9_]+"
        for part in node.values
    ]
    fixed = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return "".join(parts) if re.search("[a-z]", fixed) and " " not in fixed else ""
