"""The result of a run in one look, at most 25 lines: how it went, its main table, what did not pass, what is next.

Everything else about a run is `views.run.details`: --verbose, and `show 3.2 --run RUN --verbose`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.model.node import is_simulated
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict, PartResult
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.render import render
from gpucourse.ui.tables import Block, Cell, Content, Facts, Lines, Style, Table, View, facts
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.ui.views import slurm
from gpucourse.ui.views.checks import count_checks, list_failed_checks, list_open_checks
from gpucourse.ui.views.course import VERDICTS
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.parts import WORDS
from gpucourse.units import format_seconds, seconds_since

if TYPE_CHECKING:
    from gpucourse.model.answer import PredictionResult
    from gpucourse.model.diagnosis import LogQuote
    from gpucourse.model.manifest import Exercise
    from gpucourse.workspace.paths import RunPaths

LINES = 25
_COLUMNS = 80
FEWEST_ROWS = 3
JOBS = 6


def result(
    record: RunRecord,
    files: RunPaths,
    *,
    exercise: Exercise | None = None,
    metrics: Mapping[str, Any] | None = None,
    verdict: ExerciseVerdict | None = None,
    prediction: PredictionResult | None = None,
    next_step: str = "",
) -> View:
    """How a run went. `prediction`: the learner's. `next_step`: the command that `next` names.

    Of a run with a script of the learner's own, nothing that the exercise asks for is shown.
    """
    if record.own_script:
        exercise = metrics = None
        verdict = verdict if record.brings_checks else None
    lines = [
        *_failure(record, _next(record, next_step)),
        *_list_warnings(record),
        *(list_open_checks(verdict) if verdict else ()),
    ]
    below: list[Block] = [Lines(tuple(lines))] if lines else []
    view = View(
        title=f"{record.subject}{f'  {exercise.title}' if exercise else ''}",
        headline=headline(record, verdict),
        blocks=(*below, _facts(record, files, exercise, verdict, prediction)),
        mode=record.mode,
        next=_next(record, next_step),
    )
    if metrics is not None and exercise is not None:
        return _add_table(view, _find_main_table(exercise, metrics))
    jobs = slurm.jobs(record, exercise, measured=False) if record.state != "succeeded" else []
    return _add_table(view, jobs[0] if jobs else None)


def check_result(record: RunRecord, verdict: ExerciseVerdict, next_step: str = "") -> View:
    """What `check` found, in a few lines: the first check that did not pass, how many more, and parts that are not right."""
    lines = list_failed_checks(verdict, 1)
    open_files = ", ".join(part.file for part in verdict.parts if part.verdict == "open")
    wrong = [("your part", _part(part)) for part in verdict.parts if part.verdict not in {"open", "passed"}]
    parts = facts([*wrong[:1], ("your part" if not wrong else "", f"open: {open_files}" if open_files and not wrong else "")])
    return View(
        title=f"{verdict.exercise}  run {verdict.run}",
        headline=headline(record, verdict),
        blocks=(*([Lines(tuple(lines))] if lines else []), *([parts] if parts.pairs else [])),
        mode=verdict.mode,
        next=_next(record, next_step),
    )


def show_started(record: RunRecord) -> View:
    """A run that continues in the background, how to follow it and how to stop it."""
    headline = Cell(f"run {record.id} of {record.subject} is running in the background")
    return View(headline=headline, footer=(f"Stop it: gpucourse cancel {record.id}",), mode=record.mode, next=record.advice)


def show_cancelled(record: RunRecord, next_step: str) -> View:
    """How a run ended that was to be cancelled, and where its logs are. `next_step`: the command that `next` names."""
    headline = Cell(f"run {record.id} of {record.subject} is {record.state}; its outputs are collected")
    footer = f"Its logs: gpucourse logs {record.id}"
    return View(headline=headline, footer=(footer,), mode=record.mode, next=_next(record, next_step))


def headline(record: RunRecord, verdict: ExerciseVerdict | None, *, short: bool = False) -> Cell:
    """How a run went, in one line; `short`: without where it ran, for one of several."""
    took = format_duration(record)
    where = f"{f' in {took}' if took else ''}{' on simulated nodes' if is_simulated(record.mode) and not short else ''}"
    if not record.has_ended:
        return Cell(f"{UNICODE.dot} {record.state.replace('_', ' ')}{where}", "accent")
    if record.state != "succeeded":
        style: Style = "warn" if record.state in {"cancelled", "broken"} else "bad"
        return Cell(f"{UNICODE.bad} {record.state.replace('_', ' ')}{where}: {_reason(record)}", style)
    where += f", with {record.restarts_in_words}" if record.restarts else ""
    if verdict is None:
        counts = ": profiled, which slows it down: it gives no points" if record.profiled else ""
        return Cell(f"{UNICODE.good} succeeded{where}{counts}", "good")
    if verdict.verdict == "passed" and any(part.verdict == "failed" for part in verdict.parts):
        return Cell(f"{UNICODE.bad} your part is wrong{where}: {count_checks(verdict)}", "bad")
    word = verdict.verdict.replace("_", " ")
    told = f"{UNICODE.mark(verdict.verdict)} {word}{where}: {count_checks(verdict)}"
    return Cell(told, VERDICTS.get(verdict.verdict, "dim"))


def describe_own(record: RunRecord) -> str:
    """What a run of a script of the learner's own counts for; empty for others."""
    if not record.own_script:
        return ""
    return f"for no exercise: your own script is judged by its exit code{' and its checks' if record.checks else ''}"


def format_duration(record: RunRecord) -> str:
    """How long the ranks ran; empty if nobody knows."""
    seconds = [end.seconds for end in record.node_exits if end.seconds is not None]
    if seconds:
        return format_seconds(max(seconds))
    if "run" in record.phases_s:
        return format_seconds(record.phases_s["run"])
    if record.started and record.ended:
        return format_seconds(seconds_since(record.started) - seconds_since(record.ended))
    return ""


def _reason(record: RunRecord) -> str:
    """Why a run did not succeed."""
    first = record.first_failure
    if record.state == "timed_out":
        return "it reached its time limit and was stopped"
    if record.state == "cancelled" and record.slurm is None:
        return "you cancelled it"
    if record.state == "lost":
        return record.error or "a node was lost while it ran"
    is_batch_file = record.slurm is not None and record.own_script is not None and not record.own_script.endswith(".py")
    if first is not None and not is_batch_file:  # a job has no ranks that anybody here knows
        restarts = f", after {record.restarts_in_words}" if record.restarts else ""
        return f"rank {first.rank} on {first.node} was the first to fail, with code {first.code}{restarts}"
    if record.slurm is not None:
        bad = [f"job {row.job} {row.state}" for row in record.slurm.jobs if row.state != "COMPLETED" and not row.asked]
        return f"not all of its jobs succeeded ({', '.join(bad[:JOBS])})" if bad else "not all of its jobs succeeded"
    ends = ", ".join(f"{end.node} {end.reason} {end.code}" for end in record.node_exits if end.code)
    return record.error or f"a node's launcher failed{f' ({ends})' if ends else ''}"


def _failure(record: RunRecord, next_step: str) -> list[Content]:
    """What went wrong, once: the symptom, the line that shows it, why; and what to do where `next_step` does not say it."""
    if record.state == "succeeded" or not record.diagnoses:
        return []
    first, *others = record.diagnoses
    seen = [Cell(f"  {_place(quote, first.title)}{quote.line[:200]}") for quote in first.seen[:1]]
    more = [Cell(f"  besides: {', '.join(item.title for item in others)}", "dim")] if others else []
    to_do = [] if first.next == next_step else [Cell(f"  what to do: {first.next}", "accent")]
    return [Cell(f"{first.title} [{first.symptom}]", "bad"), *seen, Cell(f"  {first.why}", "dim"), *more, *to_do]


def _list_warnings(record: RunRecord) -> list[Content]:
    """What the run was and the learner did not ask for."""
    return [Cell(f"{UNICODE.error} {record.split_world}", "warn")] if record.split_world else []


def _place(quote: LogQuote, title: str) -> str:
    """The script's line that a quoted line comes from, where the title does not name it."""
    return f"{quote.where}: " if quote.where and quote.where not in title else ""


def _find_main_table(exercise: Exercise, metrics: Mapping[str, Any]) -> Block | None:
    """The exercise's main table; another one where nothing of it was measured, or a word that nothing was."""
    main = exercise.main_table
    others = [part for item in exercise.tables if item is not main for part in measured_table(item, metrics)]
    blocks = measured_table(main, metrics) if main else []
    return next((part for part in [*blocks, *others] if isinstance(part, Table)), next(iter(blocks), None))


def _add_table(view: View, part: Block | None) -> View:
    """The view with a table before its other parts, with as many rows as there is room for: the first and the last."""
    if not isinstance(part, Table):
        return view if part is None else view._replace(blocks=(part, *view.blocks))
    for rows in range(min(len(part.rows), LINES), FEWEST_ROWS - 1, -1):
        whole = view._replace(blocks=(_shorten(part, rows), *view.blocks))
        if len(render(whole, width=_COLUMNS).splitlines()) <= LINES:
            return whole
    return view._replace(blocks=(_shorten(part, FEWEST_ROWS), *view.blocks))


def _shorten(part: Table, most: int) -> Table:
    """The table with its first and last rows, and a row of dots for those between."""
    if len(part.rows) <= most:
        return part
    first, last = most // 2, most - most // 2 - 1
    gap: tuple[Content, ...] = (Cell(UNICODE.ellipsis, "dim"), *("" for _ in part.columns[1:]))
    rows = (*part.rows[:first], gap, *part.rows[len(part.rows) - last :])
    return part._replace(rows=rows, title=f"{part.title} ({first + last} of {part.total or len(part.rows):,} rows)")


def _facts(
    record: RunRecord,
    files: RunPaths,
    exercise: Exercise | None,
    verdict: ExerciseVerdict | None,
    prediction: PredictionResult | None,
) -> Facts:
    """The learner's part and prediction, where the pictures are, and how to see the rest."""
    plots = [path for item in exercise.plots if (path := files.plot(item.file, "png")).is_file()] if exercise else []
    nodes = slurm.summary(record) or f"{format_count(record.world_size, 'rank')} on {format_count(len(record.nodes), 'node')}"
    full = f"only the beginning of {record.full_logs[0]} was kept (log_limit in gpucourse.yaml)" if record.full_logs else ""
    refused = f"{format_count(len(record.refused), 'file')} not collected from the nodes" if record.refused else ""
    later = slurm.describe_later(record) if record.has_ended else ""
    return facts(
        [
            *(("your part", _part(part)) for part in (verdict.parts if verdict else ())),
            ("predicted", _prediction(prediction) if prediction else None),
            ("predicted", f"{record.expected_red} fails" if record.expected_red else ""),
            ("logs", Cell(full, "warn") if full else None),
            ("refused", Cell(refused, "warn") if refused else None),
            ("pictures", f"{len(plots)} in {shorten_path(files.folder)}" if plots else ""),
            ("page", "gpucourse open" if plots else ""),
            ("run", f"{record.id}, {nodes}"),
            ("later", Cell(f"{later}; gpucourse logs {record.id} collects what they write", "warn") if later else None),
            ("traces", "open them in ui.perfetto.dev" if record.profiled else ""),
            ("stop it", "" if record.has_ended else f"gpucourse cancel {record.id}"),
            ("counts", describe_own(record)),
            ("script", shorten_path(Path(record.own_script)) if record.own_script else ""),
            ("folder", shorten_path(files.folder) if record.own_script else ""),
            ("details", record.show_command(" --verbose") if record.has_ended else ""),
        ]
    )


def _part(part: PartResult) -> Cell:
    word, style = WORDS[part.verdict]
    says = f": {part.says}" if part.verdict in {"failed", "error"} and part.says else f": {part.file}"
    return Cell(f"{word}{says}", style)


def _prediction(prediction: PredictionResult) -> Cell:
    measured = f", measured {prediction.measurement}: {prediction.difference}" if prediction.measurement else ": not measured"
    style = VERDICTS.get(prediction.verdict, "dim")
    return Cell(f"{UNICODE.mark(prediction.verdict)} {prediction.prediction}{measured}", style)


def _next(record: RunRecord, next_step: str) -> str:
    """The command that `next` names; of a script of the learner's own and of a drill, the one about this run."""
    return record.advice if record.own_script or record.drill or not next_step else next_step
