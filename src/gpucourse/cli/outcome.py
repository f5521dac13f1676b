"""What a run came to: shown, captured as the screen it was, and turned into an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.documents.describe import describe_plan, describe_run
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExerciseFailed, ExitCode, GpucourseError
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.mutations import confirm_expectation
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_metrics

if TYPE_CHECKING:
    from gpucourse.runs.follow import FollowedRun
    from gpucourse.runs.run import RunResult
    from gpucourse.ui.live import Live
    from gpucourse.ui.tables import View


def show_plan(session: Session, plan: LaunchPlan, *, json: bool) -> int:
    """The exact commands of every node."""
    from gpucourse.ui.views.plan import launch

    if json:
        session.console.document({"plan": describe_plan(plan)})
    session.console.show(launch(plan))
    return ExitCode.DONE


def show_started(session: Session, record: RunRecord, *, json: bool) -> int:
    """A run that goes on without us, and how to come back to it."""
    if json:
        session.console.document({"run": describe_run(record)})
    session.console.note(
        f"run {record.id} is running in the background. "
        f"Follow it: gpucourse logs {record.id} -f; stop it: gpucourse cancel {record.id}"
    )
    return ExitCode.DONE


def tell(session: Session, attended: FollowedRun, live: Live, *, json: bool) -> int:
    """The result of a run that ended: on the screen, in `screen.svg`, as the exit code."""
    from gpucourse.runs.finish import deliver, seal_screen
    from gpucourse.ui.screen import capture

    context, record, verdict = session.context, attended.record, attended.verdict
    files = runs.files_of(context.paths, record)
    _, exercise = context.catalog.exercise(record.exercise)
    if record.first_failure is not None:
        live.show_tail(record.first_failure)
    view = show_result(session, record, verdict, json=json)
    nodes = record.slurm.nodes if record.slurm else len(record.nodes)
    what = ["--script", record.subject] if record.own_script else [record.exercise]
    command = shlex.join(["gpucourse", "run", *what, "--nodes", str(nodes)])
    # The screen is what the learner saw, so it is captured after everything was shown.
    capture(files.screen, command=command, live=live, view=view, mode=record.mode)
    seal_screen(files)
    deliver(context, exercise, record)  # again: the captured screen may be among what is asked for
    code = code_of(record, verdict)
    if record.expected_red:
        session.console.note(confirm_expectation(record, verdict))
    return code


def show_result(session: Session, record: RunRecord, verdict: ExerciseVerdict | None, *, json: bool) -> View:
    """The result of a run on the screen, and as a document where one is wanted; what was shown."""
    from gpucourse.runs.parts import list_part_files
    from gpucourse.runs.results import read_prediction
    from gpucourse.ui.views.run import result

    context = session.context
    files = runs.files_of(context.paths, record)
    _, exercise = context.catalog.exercise(record.exercise)
    prediction = read_prediction(context, exercise, record)
    view = result(
        record,
        files,
        exercise=exercise,
        metrics=read_metrics(files.metrics),
        verdict=verdict,
        deliverables=context.paths.deliverables(exercise.id) if record.verdict in {"passed", "not_measured"} else None,
        prediction=prediction,
        part_files=list_part_files(context, exercise),
    )
    if json:
        session.console.document(
            {"run": describe_run(record), "verdict": verdict, "prediction": prediction, "folder": files.folder}
        )
    session.console.show(view)
    return view


def show_next(session: Session, go: Callable[[], RunResult]) -> RunResult:
    """Do one run, with its progress and its result on the screen; a failed check or exercise is said and does not end all."""
    with session.console.watch() as live:
        session.context.watch = live
        ran = go()
    if ran.followed_run is not None:
        try:
            tell(session, ran.followed_run, live, json=False)
        except GpucourseError as error:
            session.console.warn(error.what)
    return ran


def code_of(record: RunRecord, verdict: ExerciseVerdict | None) -> int:
    """The exit code of a run: 0 where it succeeded and nothing failed. Raises ExerciseFailed or CheckFailed."""
    if record.state != "succeeded":
        raise _make_failed_error(record)
    if record.expected_red:
        confirm_expectation(record, verdict)
        return ExitCode.DONE
    checks = verdict.checks if verdict else ()
    bad = [check for check in checks if check.verdict in {"failed", "error"}]
    if bad:
        names = ", ".join(check.id for check in bad)
        raise CheckFailed(f"{len(bad)} of {len(checks)} checks did not pass: {names}", hint=bad[0].hint)
    wrong = [part for part in verdict.parts if part.verdict == "failed"] if verdict else []
    if wrong:
        raise CheckFailed(
            f"your part is wrong: {wrong[0].says}", hint=f"change {wrong[0].file}, then: gpucourse try {record.exercise}"
        )
    return ExitCode.DONE


def _make_failed_error(record: RunRecord) -> GpucourseError:
    first = record.first_failure
    words = {
        "failed": f"rank {first.rank} on {first.node} was the first to fail, with code {first.code}"
        + (f", after {record.restarts_in_words}" if record.restarts else "")
        if first
        else "not all of its jobs ended well"
        if record.slurm
        else "a node's launcher failed",
        "timed_out": "it reached its time limit and was stopped",
        "cancelled": "it was cancelled",
        "lost": record.error or (record.diagnoses[0].title if record.diagnoses else "a node was lost while it ran"),
    }
    ends = ", ".join(f"{end.node} {end.reason} {end.code}" for end in record.node_exits)
    if record.slurm is not None:
        bad = (row for row in record.slurm.jobs if row.state != "COMPLETED" and not row.asked)
        ends = ", ".join(f"job {row.job} {row.state}" for row in bad)
    return ExerciseFailed(
        f"run {record.id} of {record.subject}: {words.get(record.state, record.state)}" + (f" ({ends})" if ends else ""),
        hint=f"gpucourse logs {record.id}" + (f" --rank {record.culprit}" if record.culprit is not None else ""),
    )
