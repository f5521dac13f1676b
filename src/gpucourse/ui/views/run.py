"""Runs on the screen: the list of runs, and everything about one run, including its tables, its checks, what failed first, and
its files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpucourse.model.answer import PredictionResult
from gpucourse.model.node import SIMULATED
from gpucourse.model.record import RunRecord, name_subjects
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.mutations import find_explanation
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Content, Facts, Paragraph, View, facts, number_column, table, text_column
from gpucourse.ui.text import age, format_count, shorten_path
from gpucourse.ui.views import slurm
from gpucourse.ui.views.answers import prediction_result
from gpucourse.ui.views.checks import checks
from gpucourse.ui.views.measured import measured_table
from gpucourse.ui.views.parts import list_run_parts
from gpucourse.ui.views.plan import environment, parameters
from gpucourse.ui.views.result import describe_own, format_duration, result
from gpucourse.ui.views.words import checks_cell, state_cell
from gpucourse.units import format_bytes, seconds_since
from gpucourse.workspace.paths import RunPaths

if TYPE_CHECKING:
    from pathlib import Path

    from gpucourse.model.diagnosis import Diagnosis, LogQuote
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.settle import ListedRun

MAX_NAMED, MAX_QUOTES = 12, 2  # files listed by name; more are counted


def runs(rows: Sequence[ListedRun], next_step: str = "gpucourse next", *, exercise: str = "", has_logs: bool = True) -> View:
    """Show every run, or those of `exercise`, the newest last. `has_logs`: whether the newest run has logs."""
    if not rows:
        text = f"{exercise} has no run yet." if exercise else "There are no runs yet."
        return View(blocks=[Paragraph(text)], next=f"gpucourse run {exercise}" if exercise else next_step)
    columns: list[Column | str] = ["run", "ran", text_column("checks"), "state"]
    columns += [
        number_column("ranks", spare=True),
        number_column("took", spare=True),
        number_column("age", spare=True),
        Column("note", wrap=True, spare=True),
    ]
    newest = rows[-1].record.id
    modes, names = {run.record.mode for run in rows}, name_subjects(run.record for run in rows)
    return View(
        blocks=[table(columns, [_run_row(run, names[run.record.id]) for run in rows])],
        footer=[f"Logs of the newest run: gpucourse logs {newest}"] if has_logs else [],
        mode=SIMULATED if SIMULATED in modes else "",
        next=next_step,
    )


def details(
    record: RunRecord,
    files: RunPaths,
    *,
    exercise: Exercise | None = None,
    metrics: Mapping[str, Any] | None = None,
    verdict: ExerciseVerdict | None = None,
    deliverables: Path | None = None,
    prediction: PredictionResult | None = None,
    part_files: Mapping[str, Path] | None = None,
    changed_files: Collection[str] = (),
    next_step: str = "",
) -> View:
    """Show everything about a run. `deliverables` is the folder to which this run's results were copied. `part_files` maps each
    part's id to the learner's own file; `changed_files` are those that have changed since the run. The title, the headline and
    `next` come from `views.result.result`."""
    brief = result(record, files, exercise=exercise, metrics=metrics, verdict=verdict, next_step=next_step)
    if record.own_script:
        exercise = metrics = deliverables = None
        verdict = verdict if record.brings_checks else None
    blocks: list[Block] = [summary(record)]
    if record.state != "succeeded":
        blocks.append(failure(record))
        blocks.extend(slurm.jobs(record, exercise, are_measured=metrics is not None))
        blocks.extend(diagnoses(record.diagnoses))
    blocks.extend(slurm.queue(record, files))
    if exercise is not None and metrics is not None:
        blocks.extend(part for item in exercise.tables for part in measured_table(item, metrics))
    if prediction is not None:
        blocks.extend(prediction_result(prediction))
    if verdict is not None:
        blocks.extend(checks(verdict))
    if exercise is not None:
        blocks.append(Paragraph(find_explanation(exercise, record, verdict)))
    if record.profiled:
        blocks.append(
            Paragraph("The run earns no points, because the profiler slowed it down. Open a trace in ui.perfetto.dev.")
        )
    blocks.append(_list_files(record, files, exercise, deliverables))
    refusals = [(item.node, item.name, item.reason) for item in record.refused]
    blocks.append(table(["node", text_column("file"), text_column("reason")], refusals, title="Not collected"))
    if verdict is not None and exercise is not None:
        blocks.extend(list_run_parts(exercise, verdict.parts, part_files or {}, changed_files))
    return brief._replace(blocks=blocks)


def diagnoses(diagnosis_list: Sequence[Diagnosis]) -> list[Block]:
    """Return what the failure coach says, the likeliest diagnosis first: the symptom, the lines that show it, its cause, and
    what to do."""
    return [
        facts(
            [
                ("symptom", Cell(f"{diagnosis.title} [{diagnosis.symptom}]", "bad")),
                ("seen", "\n".join(_quote(quote) for quote in diagnosis.seen[:MAX_QUOTES])),
                ("why", diagnosis.why),
                ("next", Cell(diagnosis.next, "accent")),
            ],
            title="Also" if number else "Diagnosis",
        )
        for number, diagnosis in enumerate(diagnosis_list)
    ]


def _quote(quote: LogQuote) -> str:
    process = "launcher" if quote.rank is None else f"rank {quote.rank}"
    line = quote.line if len(quote.line) <= 160 else f"{quote.line[:157]}..."
    return f"{quote.node} {process}: {f'{quote.where}: ' if quote.where else ''}{line}"


def _run_row(entry: ListedRun, name: str) -> tuple[Content, ...]:
    record = entry.record
    return (
        record.id,
        name,
        _list_checks(record),
        state_cell(record),
        str(record.rank_count),
        format_duration(record),
        age(seconds_since(record.created)),
        entry.detail or note(record),
    )


def _list_checks(record: RunRecord) -> Cell:
    """Return the verdict of a run's checks. Without a verdict, return its state, because a narrow terminal has no room for the
    states."""
    cell = checks_cell(record)
    return cell if cell.text != UNICODE.absent else Cell(f"{UNICODE.absent} {state_cell(record).text}", "dim")


def note(record: RunRecord) -> str:
    """Return the note about a run in a list of runs: what went wrong, or that it was restarted."""
    diagnosis = record.diagnoses[0].title if record.diagnoses else ""
    return record.error or diagnosis or record.split_world or record.restarts_in_words


def summary(record: RunRecord) -> Facts:
    """Return the recorded facts about a run."""
    took = format_duration(record)
    nodes = ", ".join(record.nodes) if len(record.nodes) <= MAX_NAMED else f"{record.nodes[0]} to {record.nodes[-1]}"
    ranks = f"{record.rank_count} on {format_count(record.node_count, 'node')} ({nodes}), by {record.launcher}"
    restarts = f", with {record.restarts_in_words}" if record.restarts else ""
    return facts(
        [
            ("run", record.id),
            ("state", state_cell(record, f"{f' in {took}' if took else ''}{restarts}")),
            ("jobs", slurm.summary(record)),
            ("ranks", "" if record.slurm else ranks),
            ("parameters", parameters(record.parameters)),
            ("predicted", f"{record.expected_red} fails" if record.expected_red else ""),
            ("environment", environment(record.environment, record.handed_on)),
            ("torchrun", record.torchrun),
            ("counts", describe_own(record)),
            ("logs", _full_logs(record)),
        ]
    )


def _full_logs(record: RunRecord) -> Cell | None:
    """Return a warning that logs reached their limit, or None if all logs are complete."""
    if not record.full_logs:
        return None
    remainder = f" and {format_count(len(record.full_logs) - 1, 'other')}" if len(record.full_logs) > 1 else ""
    return Cell(f"only the beginning of {record.full_logs[0]}{remainder} was kept (log_limit in gpucourse.yaml)", "warn")


def failure(record: RunRecord) -> Facts:
    """Return what failed first, and how each failed node ended. The result is empty for a run that went well."""
    first = record.first_failure
    failed_exits = [
        node_exit for node_exit in record.node_exits if (node_exit.code or node_exit.reason != "exited") and not record.slurm
    ]
    return facts(
        [
            ("first to fail", Cell(f"rank {first.rank} on {first.node}, exit code {first.code}", "bad") if first else None),
            ("restarts", f"{record.restarts} of {record.max_restarts}" if record.max_restarts else ""),
            (
                "nodes",
                "\n".join(
                    _node_exit(node_exit.node, node_exit.reason, node_exit.code, node_exit.killed) for node_exit in failed_exits
                ),
            ),
            ("error", record.error),
        ],
        title="What went wrong",
    )


def _node_exit(node: str, reason: str, code: int, killed_count: int) -> str:
    signal = f" (signal {code - 128})" if 128 < code < 192 else ""
    words = {"exited": f"exit code {code}{signal}", "timed_out": "timed out", "lost": "was lost"}
    killed_text = f", {format_count(killed_count, 'process', 'processes')} ended" if killed_count else ""
    return f"{node}: {words.get(reason, reason)}{killed_text}"


def _list_files(record: RunRecord, files: RunPaths, exercise: Exercise | None, deliverables: Path | None) -> Facts:
    """Return the paths of the run's folder, logs, outputs, plots and deliverables."""
    count, total = record.output_totals
    names = [item.path for item in record.outputs[:MAX_NAMED]]
    if count > MAX_NAMED:
        names.append(f"and {count - MAX_NAMED} more")
    pictures = [files.plot(item.file, "png") for item in exercise.plots] if exercise else []
    has_deliverables = record.state == "succeeded" and record.verdict not in {"failed", "error"} and deliverables is not None
    return facts(
        [
            ("folder", shorten_path(files.folder)),
            ("logs", shorten_path(files.logs) if files.logs.is_dir() else ""),
            (
                "outputs",
                "\n".join([f"{format_count(count, 'file')}, {format_bytes(total)}", *names]) if record.outputs else "",
            ),
            ("plots", "\n".join(shorten_path(path) for path in pictures if path.is_file())),
            ("deliverables", shorten_path(deliverables) if has_deliverables and deliverables and deliverables.is_dir() else ""),
        ],
        title="Results",
    )
