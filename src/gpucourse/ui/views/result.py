"""The result of a run at a glance: how it went, its main table, what did not pass, and what to do next. The result has at most
25 lines, unless a main table of at most 12 rows needs more. If the lines do not suffice, lines outside the table are left out
first, then the rows of the table that matter least.

Everything else about a run is in `views.run.details`, which --verbose and `show 3.2 --run RUN --verbose` show.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.model.node import is_simulated
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict, PartResult, count_verdicts
from gpucourse.runs.mutations import find_explanation, is_as_predicted, list_red_checks
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.render import render
from gpucourse.ui.tables import Block, Cell, Content, Facts, Lines, Paragraph, Style, Table, View, facts, text_of
from gpucourse.ui.text import format_count, shorten_path
from gpucourse.ui.views import slurm
from gpucourse.ui.views.checks import Detail, list_failed_checks, list_open_checks
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.parts import CHANGED_LATER, WORDS
from gpucourse.ui.views.words import VERDICTS, describe_drill, verdict_cell
from gpucourse.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from gpucourse.model.answer import PredictionResult
    from gpucourse.model.diagnosis import LogQuote
    from gpucourse.model.manifest import Exercise
    from gpucourse.workspace.paths import RunPaths

LINES = 25
_COLUMNS = 80
_LEARNERS = re.compile(r"(?<!not )\b(?:yours|as delivered)\b")
_BAD = frozenset({"false", "no", "wrong", "failed", "FAILED", "lost"})
MIN_ROWS = 3
MAX_WHOLE_ROWS = 12
"""A table with at most this many rows is never shortened, if the manifest marks it as the main table."""
JOBS = 6


def result(
    record: RunRecord,
    files: RunPaths,
    *,
    exercise: Exercise | None = None,
    metrics: Mapping[str, Any] | None = None,
    verdict: ExerciseVerdict | None = None,
    prediction: PredictionResult | None = None,
    changed_files: Collection[str] = (),
    next_step: str = "",
) -> View:
    """Show how a run went. `changed_files` are the learner's files that have changed since the run. `next_step` is the command
    that `gpucourse next` suggests.

    For a run of the learner's own script, nothing that the exercise requires is shown.
    """
    if record.own_script:
        exercise = metrics = None
        verdict = verdict if record.brings_checks else None
    part: Block | None = None
    if metrics is not None and exercise is not None:
        part = _find_main_table(exercise, metrics)
    elif record.state != "succeeded":
        part = next(iter(slurm.jobs(record, exercise, are_measured=False)), None)
    view = View(
        title=f"{record.subject}{f'  {exercise.title}' if exercise else ''}",
        headline=headline(record, verdict),
        mode=record.mode,
        next=_next(record, next_step),
    )
    detail: Detail
    for brief_facts, detail in ((False, "names"), (True, "names"), (True, "counts"), (True, "failed")):
        lines = [*_failure(record, view.next), *(list_open_checks(verdict, detail) if verdict else ())]
        rows = _facts(record, files, exercise, verdict, prediction, changed_files, brief=brief_facts)
        explanation = Paragraph(_explain(exercise, record, verdict, prediction))
        blocks_below: list[Block] = [Lines(lines), rows, explanation]
        whole = view._replace(blocks=[*([part] if part else []), *blocks_below])
        if _count_lines(whole) <= LINES:
            return whole
    is_whole = exercise is not None and exercise.main_table is not None and exercise.main_table.main
    if not isinstance(part, Table) or (is_whole and len(part.rows) <= MAX_WHOLE_ROWS):
        return whole
    return _shorten_table(view, part, blocks_below)


def check_result(
    record: RunRecord, verdict: ExerciseVerdict, next_step: str = "", *, changed_files: Collection[str] = ()
) -> View:
    """Show in a few lines what `check` found: the first check that did not pass, the number of other failed checks, and parts
    that are not right. `changed_files` are the learner's files that have changed since the run."""
    lines = list_failed_checks(verdict, 1)
    parts_to_do = _list_parts([part for part in verdict.parts if part.verdict != "passed"], changed_files)
    parts = facts(("your part", text) for text in parts_to_do[:1])
    return View(
        title=f"{verdict.exercise}  run {verdict.run}",
        headline=headline(record, verdict),
        blocks=[Lines(lines), parts],
        mode=verdict.mode,
        next=_next(record, next_step),
    )


def show_started(record: RunRecord) -> View:
    """Show a run that continues in the background, how to follow it and how to stop it."""
    headline = Cell(f"run {record.id} of {record.subject} is running in the background")
    return View(headline=headline, footer=[f"Stop it: gpucourse cancel {record.id}"], mode=record.mode, next=record.advice)


def show_cancelled(record: RunRecord, next_step: str) -> View:
    """Show how a run ended after `cancel`, and where its logs are. `next_step` is the command that `gpucourse next`
    suggests."""
    headline = Cell(f"run {record.id} of {record.subject} is {record.state}; its outputs are collected")
    footer = f"Its logs: gpucourse logs {record.id}"
    return View(headline=headline, footer=[footer], mode=record.mode, next=_next(record, next_step))


def headline(record: RunRecord, verdict: ExerciseVerdict | None, *, short: bool = False) -> Cell:
    """Return one line that says how a run went. With `short`, for one of several runs, it does not mention the mode."""
    took = format_duration(record)
    suffix = f"{f' in {took}' if took else ''}{' on simulated nodes' if is_simulated(record.mode) and not short else ''}"
    if not record.has_ended:
        return Cell(f"{UNICODE.dot} {record.state.replace('_', ' ')}{suffix}", "accent")
    if record.state == "broken":
        return Cell(f"{UNICODE.dot} drill{suffix}: {describe_drill(record)}", "warn")
    if record.state != "succeeded":
        style: Style = "warn" if record.state == "cancelled" else "bad"
        return Cell(f"{UNICODE.bad} {record.state.replace('_', ' ')}{suffix}: {_reason(record)}", style)
    suffix += f", with {record.restarts_in_words}" if record.restarts else ""
    if record.expected_red and verdict is not None:
        if is_as_predicted(record, verdict):
            return Cell(f"{UNICODE.good} as you predicted: only {record.expected_red} failed{suffix}", "good")
        red = list_red_checks(verdict)
        outcome = f"{', '.join(red)} failed" if red else "no check failed"
        return Cell(f"{UNICODE.bad} not as you predicted ({record.expected_red}): {outcome}{suffix}", "bad")
    if verdict is None:
        counts = ": no points, because the profiler slowed it down" if record.profiled else ""
        return Cell(f"{UNICODE.good} succeeded{suffix}{counts}", "good")
    if verdict.verdict == "passed" and any(part.verdict == "failed" for part in verdict.parts):
        return Cell(f"{UNICODE.bad} your part is wrong{suffix}: {count_verdicts(verdict.checks)}", "bad")
    return verdict_cell(verdict.verdict, f"{suffix}: {count_verdicts(verdict.checks)}")


def describe_own(record: RunRecord) -> str:
    """Return the note about a run of the learner's own script, which says that it counts for no exercise, and how it is
    judged. Return an empty text for other runs."""
    if not record.own_script:
        return ""
    return f"for no exercise: your own script is judged by its exit code{' and its checks' if record.checks else ''}"


def format_duration(record: RunRecord) -> str:
    """Return how long the ranks ran, or an empty string if that is not known."""
    return "" if record.seconds is None else format_seconds(record.seconds)


def _reason(record: RunRecord) -> str:
    """Return why a run did not succeed."""
    first = record.first_failure
    if record.state == "timed_out":
        return "it reached its time limit and was stopped"
    if record.state == "cancelled" and record.slurm is None:
        return "you cancelled it"
    if record.state == "lost":
        return record.error or "a node was lost while it ran"
    is_batch_file = record.slurm is not None and record.own_script is not None and not record.own_script.endswith(".py")
    if first is not None and not is_batch_file:  # the ranks of a batch file's jobs are not known here
        restarts = f", after {record.restarts_in_words}" if record.restarts else ""
        return f"rank {first.rank} on {first.node} was the first to fail, with code {first.code}{restarts}"
    if record.slurm is not None:
        failed_jobs = [f"job {row.job} {row.state}" for row in record.slurm.jobs if row.state != "COMPLETED" and not row.asked]
        return (
            f"not all of its jobs succeeded ({', '.join(failed_jobs[:JOBS])})"
            if failed_jobs
            else "not all of its jobs succeeded"
        )
    ends = ", ".join(f"{end.node} {end.reason} {end.code}" for end in record.node_exits if end.code)
    return record.error or f"a node's launcher failed{f' ({ends})' if ends else ''}"


def _failure(record: RunRecord, next_step: str) -> list[Content]:
    """Return what went wrong: the symptom, the line that shows it, why, and what to do unless `next_step` already says it.
    Return a warning as well if the process groups of the run differ from the plan."""
    warning = [Cell(f"{UNICODE.error} {record.split_world}", "warn")] if record.split_world else []
    if record.state == "succeeded" or not record.diagnoses:
        return [*warning]
    first, *other_diagnoses = record.diagnoses
    quotes = [Cell(f"  {_place(quote, first.title)}{quote.line[:200]}") for quote in first.seen[:1]]
    other_cells = [Cell(f"  also: {', '.join(item.title for item in other_diagnoses)}", "dim")] if other_diagnoses else []
    to_do = [] if first.next == next_step else [Cell(f"  what to do: {first.next}", "accent")]
    return [
        Cell(f"{first.title} [{first.symptom}]", "bad"),
        *quotes,
        Cell(f"  {first.why}", "dim"),
        *other_cells,
        *to_do,
        *warning,
    ]


def _place(quote: LogQuote, title: str) -> str:
    """Return the line of the script that a quoted line comes from, or an empty string if the title already names it."""
    return f"{quote.where}: " if quote.where and quote.where not in title else ""


def _find_main_table(exercise: Exercise, metrics: Mapping[str, Any]) -> Block | None:
    """Return the exercise's main table. If nothing in it was measured, return another table, or a note that nothing was
    measured."""
    main = exercise.main_table
    other_parts = [part for item in exercise.tables if item is not main for part in measured_table(item, metrics)]
    blocks = measured_table(main, metrics) if main else []
    return next((part for part in [*blocks, *other_parts] if isinstance(part, Table)), next(iter(blocks), None))


def _explain(
    exercise: Exercise | None, record: RunRecord, verdict: ExerciseVerdict | None, prediction: PredictionResult | None
) -> str:
    """Return the explanation of the option that the learner predicted, or of the mutation that the run answered."""
    if exercise is None:
        return ""
    is_choice = exercise.predict is not None and exercise.predict.kind == "choice"
    explanation = prediction.explanation if prediction is not None and is_choice else ""
    return explanation or find_explanation(exercise, record, verdict)


def _count_lines(view: View) -> int:
    return len(render(view, width=_COLUMNS).splitlines())


def _shorten_table(view: View, part: Table, lower_blocks: list[Block]) -> View:
    """Return the view with as many rows of a long table as fit."""
    for row_count in range(min(len(part.rows), LINES), MIN_ROWS, -1):
        shorter = view._replace(blocks=[_choose_rows(part, row_count), *lower_blocks])
        if _count_lines(shorter) <= LINES:
            return shorter
    return view._replace(blocks=[_choose_rows(part, MIN_ROWS), *lower_blocks])


def _choose_rows(part: Table, row_count: int) -> Table:
    """Return the table with `row_count` rows in their order, and an ellipsis for each gap. Rows that matter are chosen first,
    then the first and the last rows."""
    if len(part.rows) <= row_count:
        return part
    matters = list(_mark_rows(part))
    order = sorted(range(len(matters)), key=lambda index: (not matters[index], min(index, len(matters) - 1 - index)))
    indices = sorted(order[:row_count])
    gap: list[Content] = [Cell(UNICODE.ellipsis, "dim"), *("" for _ in part.columns[1:])]
    rows: list[Sequence[Content]] = []
    for previous, index in zip([-1, *indices], [*indices, len(matters)], strict=True):
        rows += [gap] if index - previous > 1 else []
        rows += [part.rows[index]] if index < len(matters) else []
    return part._replace(rows=rows, title=f"{part.title} ({row_count} of {part.total or len(matters):,} rows)")


def _mark_rows(part: Table) -> Iterator[bool]:
    """Yield for each row whether it matters: the manifest keeps it, it is the learner's, something in it failed, or it has a
    value in a column in which most rows have 0 or none."""
    texts = [[text_of(content) for content in row] for row in part.rows]
    mostly_nothing = [sum(map(_is_nothing, column)) > len(column) / 2 for column in zip(*texts, strict=True)]
    for index, row in enumerate(texts):
        differs = any(nothing and not _is_nothing(text) for text, nothing in zip(row, mostly_nothing, strict=True))
        is_bad = any(text in _BAD or _LEARNERS.search(text) for text in row)
        yield index in part.keep or differs or is_bad


def _is_nothing(text: str) -> bool:
    return text in {"", UNICODE.absent} or bool(re.fullmatch(r"0(?:\.0+)?", text))


def _facts(
    record: RunRecord,
    files: RunPaths,
    exercise: Exercise | None,
    verdict: ExerciseVerdict | None,
    prediction: PredictionResult | None,
    changed_files: Collection[str],
    *,
    brief: bool,
) -> Facts:
    """Return the learner's part and prediction, where the pictures are, and how to see more. With `brief`, use fewer lines."""
    plots = [path for item in exercise.plots if (path := files.plot(item.file, "png")).is_file()] if exercise else []
    nodes = slurm.summary(record) or f"{format_count(record.rank_count, 'rank')} on {format_count(record.node_count, 'node')}"
    full = f"only the beginning of {record.full_logs[0]} was kept (log_limit in gpucourse.yaml)" if record.full_logs else ""
    refusals = f"{format_count(len(record.refused), 'file')} not collected from the nodes" if record.refused else ""
    own_files = {part.file for part in exercise.yours} if exercise else set()
    mutated_files = [name for name in record.edited if name not in {*own_files, *changed_files}]
    later_jobs = slurm.describe_later(record) if record.has_ended else ""
    return facts(
        [
            *(("your part", text) for text in _list_parts(verdict.parts if verdict else (), changed_files)),
            ("predicted", _prediction(prediction) if prediction else None),
            ("predicted", f"{record.expected_red} fails" if record.expected_red else ""),
            (
                "edited",
                f"{', '.join(mutated_files)}: put the line back" if mutated_files and is_as_predicted(record, verdict) else "",
            ),
            ("logs", Cell(full, "warn")),
            ("left out", Cell(refusals, "warn")),
            (
                "pictures",
                f"{len(plots)} {'on the page' if brief else f'in {shorten_path(files.folder)}'}: gpucourse open"
                if plots
                else "",
            ),
            ("run", f"{record.id}, {nodes}" if not brief or not record.has_ended else ""),
            ("later", Cell(f"{later_jobs}; gpucourse logs {record.id} collects their output", "warn") if later_jobs else None),
            ("traces", "open them in ui.perfetto.dev" if record.profiled else ""),
            ("stop it", "" if record.has_ended else f"gpucourse cancel {record.id}"),
            ("counts", describe_own(record)),
            ("script", shorten_path(Path(record.own_script)) if record.own_script else ""),
            ("collected", _describe_collected(record)),
            ("folder", shorten_path(files.folder) if record.own_script else ""),
            ("details", record.show_command(" --verbose") if record.has_ended else ""),
        ]
    )


def _list_parts(parts: Sequence[PartResult], changed_files: Collection[str]) -> list[Cell]:
    """Return a line for each part that the learner has written, and one line for all parts that are still open."""
    files = [part.file for part in parts if part.verdict == "open" and part.file not in changed_files]
    verb = "is" if len(files) == 1 else "are"
    open_parts = [Cell(f"{' and '.join(files)} {verb} open: not written yet", WORDS["open"][1])] if files else []
    return [*(_part(part, changed_files) for part in parts if part.file not in files), *open_parts]


def _describe_collected(record: RunRecord) -> str:
    """Return how many files were collected from the learner's own script, their total size, and where they are."""
    if not (record.own_script and record.has_ended and record.collected):
        return ""
    count, size = record.output_totals
    return f"{format_count(count, 'file')}, {format_bytes(size)}, in its outputs/" if count else "no file"


def _part(part: PartResult, changed_files: Collection[str]) -> Cell:
    """Return the state of a part, and the reason if it is not right. If its file has changed since the run, say that this was
    its state in the run."""
    word, style = WORDS[part.verdict]
    reason = f": {part.says}" if part.verdict in {"failed", "error"} and part.says else ""
    if part.file not in changed_files:
        return Cell(f"{part.file} is {word}{reason}", style)
    return Cell(f"{part.file} was {word} in this run{reason}; {CHANGED_LATER}", style)


def _prediction(prediction: PredictionResult) -> Cell:
    outcome = f", measured {prediction.measurement}: {prediction.deviation}" if prediction.measurement else ": not measured"
    style = VERDICTS.get(prediction.verdict, "dim")
    return Cell(f"{UNICODE.mark(prediction.verdict)} {prediction.prediction}{outcome}", style)


def _next(record: RunRecord, next_step: str) -> str:
    """Return the command that `gpucourse next` suggests. For a drill that is not solved or the learner's own script, return the
    command for this run instead."""
    return record.advice if record.own_script or (record.drill and record.advice) or not next_step else next_step
