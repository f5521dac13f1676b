"""`run --all`: every exercise of a module, on each of its labs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpucourse.cli.outcome import show_line
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExerciseFailed, ExitCode

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
    from gpucourse.model.manifest import Exercise
    from gpucourse.runs.prepare import RunRequest
    from gpucourse.runs.run import RunResult


def run_all(session: Session, run_request: RunRequest, *, json: bool) -> int:
    """Run every exercise of a module on every lab of it that is up; return the exit code. Raises ExerciseFailed,
    CheckFailed."""
    from gpucourse.runs.run_module import labs
    from gpucourse.runs.run_module import run_all as act
    from gpucourse.ui.views.many import everything as view

    context = session.context
    module = context.catalog.module(run_request.exercise)
    first = labs(context, module, run_request)[0]
    session.console.mode(first.mode, first.lacks)
    of = len(module.exercises)

    def run_exercise(exercise: Exercise, lab: Deployment, go: Callable[[], RunResult]) -> RunResult:
        number = [item.id for item in module.exercises].index(exercise.id) + 1
        return show_line(session, f"{number} of {of}, {lab.stack}, {exercise.id} {exercise.title}", go)

    steps = act(context, module, run_request, run_exercise)
    if json:
        session.console.document({"steps": steps})
    session.console.show(view(steps, session.find_step()))
    bad = [f"{step.exercise} on {step.lab}" for step in steps if not step.good]
    if not bad:
        return ExitCode.DONE
    ran = all(step.state in {"succeeded", "skipped"} for step in steps)
    words = f"{len(bad)} of {len(steps)} did not pass: {', '.join(bad)}"
    raise (CheckFailed if ran else ExerciseFailed)(words, hint="gpucourse runs")
