"""Show the result of a run, store it as a picture of the screen, and choose the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpucourse.cli.output import JsonDocument, RunDocument, field
from gpucourse.cli.session import Session
from gpucourse.context import Context
from gpucourse.errors import ExitCode, GpucourseError
from gpucourse.model.answer import PredictionResult
from gpucourse.model.plan import Batch, Upload
from gpucourse.model.record import RunRecord
from gpucourse.model.sweep import Point
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.mutations import confirm_expectation, is_as_predicted
from gpucourse.runs.run_module import ExerciseRun
from gpucourse.ui.tables import Cell, Facts, View
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_metrics

if TYPE_CHECKING:
    from gpucourse.runs.follow import FollowedRun
    from gpucourse.runs.run import RunResult
    from gpucourse.ui.live import Live


class RunOutput(JsonDocument):
    """The output of `show --run`, and of a `run` that was followed to its end."""

    run: RunDocument
    verdict: ExerciseVerdict | None
    prediction: PredictionResult | None
    folder: Path


class CommandDocument(JsonDocument):
    """The command that one node runs."""

    node_name: str = field(name="node")
    argv: list[str]
    env: dict[str, str]
    ranks: list[int]


class PlanDocument(JsonDocument):
    """The plan of a run. `batch` is the part for Slurm, or null if Slurm is not used. `handed_on` names the variables whose
    values come from this computer. In an upload, `name` is the path on the node and `source` is the file on this computer."""

    exercise: str
    launcher: str
    mode: str
    script: str
    parameters: dict[str, Any]
    commands: list[CommandDocument]
    uploads: list[Upload]
    handed_on: list[str]
    timeout_s: float
    batch: Batch | None


class Plan(JsonDocument):
    """The output of `run --dry-run`."""

    plan: PlanDocument


class SweepDocument(JsonDocument):
    """A sweep and its runs."""

    id: str
    exercise: str
    parameter: str
    unit: str
    state: str
    points: list[Point]


class SweepOutput(JsonDocument):
    """The output of `run --sweep`."""

    sweep: SweepDocument
    folder: Path
    files: list[Path]


class ModuleRuns(JsonDocument):
    """The output of `run --all`."""

    steps: list[ExerciseRun]


def present_run(session: Session, followed_run: FollowedRun, live: Live) -> int:
    """Show the result of a run that has ended, store the screen as `screen.svg`, and return the exit code. Raises CheckFailed
    if the learner predicted which check would fail and was wrong."""
    record, verdict = followed_run.record, followed_run.verdict
    if record.state == "failed" and not record.diagnoses:
        with session.console.guard("show the end of the log"):
            _show_tail(record, live)
    view = View()
    with _guard_result(session):
        has_own_step = record.state == "succeeded" and record.expected_red and not is_as_predicted(record, verdict)
        view = show_result(session, record, verdict, has_step=not has_own_step)  # otherwise find_exit_code names the step
    _store_screen(session, record, live, view)
    return find_exit_code(record, verdict)


def _guard_result(session: Session) -> AbstractContextManager[None]:
    """Return a context manager that turns an error in showing the result into a warning. The run still has its result and its
    exit code."""
    return session.console.guard("show the result", except_for=(GpucourseError, OSError))


def _show_tail(record: RunRecord, live: Live) -> None:
    """Show the end of the log of the rank or launcher that failed first. Call this if the cause of the failure is not known."""
    launcher = next((end.node for end in record.node_exits if end.code), None)
    if record.first_failure is not None:
        live.show_tail(record.first_failure.node, record.first_failure.rank)
    elif launcher is not None:
        live.show_tail(launcher, None)


def _store_screen(session: Session, record: RunRecord, live: Live, view: View) -> None:
    """Store a picture of the learner's screen. Call this last, because the picture contains only what has been shown so far."""
    from gpucourse.runs.finish import deliver, seal_screen
    from gpucourse.ui.screen import capture

    context = session.context
    with session.console.guard("store the picture of the screen"):
        files = runs.files_of(context.paths, record)
        nodes = record.slurm.nodes if record.slurm else len(record.nodes)
        command = shlex.join(["gpucourse", "run", *record.run_words, "--nodes", str(nodes)])
        capture(files.screen, command=command, live=live, view=view, mode=record.mode)
        seal_screen(files)
        _, exercise = context.catalog.exercise(record.exercise)
        if any(
            files.screen.match(item.source) for item in exercise.deliverables
        ):  # other deliverables have already been handed in
            deliver(context.paths, exercise, record)


def show_result(
    session: Session, record: RunRecord, verdict: ExerciseVerdict | None, *, paged: bool = False, has_step: bool = True
) -> View:
    """Show the result of a run, in full detail with --verbose or as a document with --json, and return the view. With `paged`,
    a result that is longer than the terminal is shown in the user's pager. Without `has_step`, no next step is shown.
    """
    view, document = _describe(session, record, verdict, has_step=has_step)
    session.present(view, document, paged=paged)
    return view


def _describe(
    session: Session, record: RunRecord, verdict: ExerciseVerdict | None, *, has_step: bool = True
) -> tuple[View, RunOutput]:
    """Return the result of a run as a view and as a document."""
    from gpucourse.runs.parts import list_changed_files, list_part_files
    from gpucourse.runs.results import read_prediction
    from gpucourse.ui.views.result import result
    from gpucourse.ui.views.run import details

    context = session.context
    files = runs.files_of(context.paths, record)
    _, exercise = context.catalog.exercise(record.exercise)
    prediction = read_prediction(context.paths, exercise, record)
    changed_files = list_changed_files(context, exercise, record)
    metrics = read_metrics(files.metrics)
    step = session.find_step("" if record.own_script else record.exercise) if has_step else ""
    if session.console.verbose:
        view = details(
            record,
            files,
            exercise=exercise,
            metrics=metrics,
            verdict=verdict,
            deliverables=context.paths.deliverables(exercise.id) if record.verdict in {"passed", "not_measured"} else None,
            prediction=prediction,
            part_files=list_part_files(context, exercise),
            changed_files=changed_files,
            next_step=step,
        )
        if record.drill:
            view = view._replace(blocks=[*view.blocks, *_list_open_faults(session, record)])
    else:
        view = result(
            record,
            files,
            exercise=exercise,
            metrics=metrics,
            verdict=verdict,
            prediction=prediction,
            changed_files=changed_files,
            next_step=step,
        )
    return view, RunOutput(run=RunDocument.build(record), verdict=verdict, prediction=prediction, folder=files.folder)


def _list_open_faults(session: Session, record: RunRecord) -> list[Facts]:
    """Return the faults to choose from, with their meanings, if a drill has a fault in its code that is not found yet."""
    from gpucourse.runs.code_drill import is_open_drill, list_faults
    from gpucourse.ui.views.drill import list_meanings

    context = session.context
    if not is_open_drill(context.paths, record):
        return []
    module, _ = context.catalog.exercise(record.exercise)
    return [list_meanings(list_faults([module]))]


def show_line(session: Session, label: str, start_run: Callable[[Context], RunResult]) -> RunResult:
    """Do one run of a series by calling `start_run`, and return its result.

    Show one line about it or, with --verbose, everything that `run` shows. A failed check or exercise does not end the
    series.
    """
    from gpucourse.ui.views.result import headline

    console = session.console
    with console.watch(brief=not console.verbose) as live:
        result = start_run(session.context.watched_by(live))
    if result.followed_run is None:
        return result
    record, verdict = result.followed_run.record, result.followed_run.verdict
    view = View()
    with _guard_result(session):
        view, _ = _describe(session, record, verdict)
        if console.verbose:
            console.show(view)
    _store_screen(session, record, live, view)
    with _guard_result(session):
        sentence = headline(record, verdict, short=True)
        console.line(Cell(f"{sentence.text[0]} {label}: {sentence.text[2:]}", sentence.style))
    return result


def find_exit_code(record: RunRecord, verdict: ExerciseVerdict | None) -> ExitCode:
    """Return the exit code of a run: 0 if it succeeded and no check or part failed. If the learner predicted which check would
    fail, that check may fail as well. The code of a drill that ended is always 0, because it fails on purpose.

    Raises CheckFailed if that prediction was wrong.
    """
    if record.state == "broken" and not record.repair:
        return ExitCode.DONE
    if record.state != "succeeded":
        return ExitCode.EXERCISE_FAILED
    if record.expected_red:
        confirm_expectation(record, verdict)
    if record.expected_red or verdict is None:
        return ExitCode.DONE
    has_bad_check = any(check.verdict in {"failed", "error"} for check in verdict.checks)
    has_wrong_part = any(part.verdict == "failed" for part in verdict.parts)
    return ExitCode.CHECK_FAILED if has_bad_check or has_wrong_part else ExitCode.DONE
