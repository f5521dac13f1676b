"""The command `break`: runs an exercise with a fault injected into its run or its code. The learner then submits a diagnosis
with `check --diagnosis`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import ParametersFlag
from gpucourse.cli.output import JsonDocument, OneRun, RunDocument
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, UsageError
from gpucourse.judge.client import JudgeAnswer
from gpucourse.model.verdict import ExerciseVerdict

if TYPE_CHECKING:
    from gpucourse.runs.resolve import RunRequest


class JudgedRepair(JsonDocument):
    """The output of `break --repaired`: the run of the copy, its checks, and the judge's verdict on the fault."""

    run: RunDocument
    verdict: ExerciseVerdict | None
    judged: JudgeAnswer | None


def break_(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="An exercise with several ranks: 3.2", autocompletion=complete.exercises)],
    kind: Annotated[
        Literal["kill-rank", "block-port", "wrong-world-size", "slow-rank", "code"] | None,
        typer.Option("--how", help="Which fault (default: a random one); code: an error in a copy of the script."),
    ] = None,
    repaired: Annotated[bool, typer.Option("--repaired", help="Run and judge the copy that you repaired.")] = False,
    nodes: Annotated[int | None, typer.Option("--nodes", help="The number of nodes.")] = None,
    settings: ParametersFlag = None,
) -> None:
    """Run an exercise with an injected fault, for you to diagnose."""
    from gpucourse.cli.flags import read_settings
    from gpucourse.runs.drill import break_exercise, choose_simulated_lab
    from gpucourse.runs.resolve import RunRequest, locate_run, resolve
    from gpucourse.ui.views.drill import drill

    hint = f"gpucourse show {exercise} lists its parameters"
    run_request = RunRequest(exercise=exercise, nodes=nodes, settings=read_settings(settings or [], hint))
    session.require_exercise(exercise)
    context = session.context
    is_in_code = repaired or kind == "code"
    located = resolve(context, run_request if is_in_code else choose_simulated_lab(context, run_request))
    session.console.mode(locate_run(context, located).mode)
    if repaired and kind not in {None, "code"}:
        raise UsageError(
            f"--repaired is for a copy with a fault in its code, not for {kind}",
            hint=f"gpucourse break {exercise} --repaired",
        )
    if repaired:
        _judge_repair(session, run_request)
    elif kind == "code":
        _break_code(session, run_request)
    else:
        with session.console.watch() as live:
            record = break_exercise(context.watched_by(live), run_request, kind).record
        folder = context.paths.run(record.exercise, record.id).folder
        session.present(drill(record), OneRun.build(run=record, folder=folder))


def _break_code(session: Session, run_request: RunRequest) -> None:
    from gpucourse.runs.code_drill import break_code, list_faults
    from gpucourse.ui.views.drill import code_drill
    from gpucourse.workspace.files import read_metrics
    from gpucourse.workspace.runs import files_of

    context = session.context
    with session.console.watch() as live:
        record = break_code(context.watched_by(live), run_request).record
    module, exercise = context.catalog.exercise(record.exercise)
    copy = context.paths.broken_copy(exercise.id)
    faults = list_faults([module])
    metrics = read_metrics(files_of(context.paths, record).metrics)
    titles = {word: fault.title for word, fault in faults.items()}
    session.present(
        code_drill(record, exercise, metrics, copy, faults, whole=session.console.verbose),
        OneRun.build(run=record, copy=copy, faults=titles),
    )


def _judge_repair(session: Session, run_request: RunRequest) -> None:
    from gpucourse.runs.code_drill import judge_repair
    from gpucourse.ui.views.drill import repair as view

    context = session.context
    with session.console.watch() as live:
        result = judge_repair(context.watched_by(live), run_request)
    run = RunDocument.build(result.record)
    document = JudgedRepair(run=run, verdict=result.verdict, judged=result.judged)
    session.present(view(result), document, place=result.record.exercise if result.is_right else None)
    if not result.is_right:
        message = result.judged.says if result.judged else "the run of the copy did not succeed"
        has_fault = result.judged is None or result.judged.word != "passed"
        raise CheckFailed(
            f"not repaired yet: {message}" if has_fault else "the fault is gone, but not all checks pass",
            hint=f"change the copy in {context.paths.broken_copy(result.record.exercise)}, then: "
            f"gpucourse break {result.record.exercise} --repaired",
        )
