"""`run --sweep`: an exercise with every value of a parameter."""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import TYPE_CHECKING

from gpucourse.cli.outcome import show_line
from gpucourse.cli.session import Session
from gpucourse.errors import CheckFailed, ExitCode

if TYPE_CHECKING:
    from gpucourse.runs.prepare import RunRequest
    from gpucourse.runs.run import RunResult


def run_sweep(session: Session, run_request: RunRequest, typed: str, *, json: bool) -> int:
    """Run an exercise with every value of a parameter; return the exit code. Raises ExerciseFailed, CheckFailed."""
    from gpucourse.runs import parameter_sweep as act
    from gpucourse.runs.prepare import resolve
    from gpucourse.runs.run import locate_run
    from gpucourse.ui.views.many import sweep as view

    context = session.context
    parameter, values = act.values_of(context, run_request, typed)
    location = locate_run(context, resolve(context, run_request))
    session.console.mode(location.mode, location.lacks)

    def run_point(value: object, number: int, go: Callable[[], RunResult]) -> RunResult:
        return show_line(session, f"{number} of {len(values)}, {parameter.name}={value}", go)

    done = act.sweep(context, run_request, parameter, values, run_point)
    if json:
        keys = ("id", "exercise", "parameter", "unit", "state", "points")
        sweep = {key: getattr(done.sweep, key) for key in keys}
        session.console.document({"sweep": sweep, "folder": done.folder, "files": done.files})
    step = "" if done.own_script else session.find_step()
    session.console.show(view(done, whole=session.console.verbose, next_step=step))
    if (error := act.make_failure(done.sweep)) is not None:
        raise error
    bad = [point for point in done.sweep.points if point.verdict in {"failed", "error"}]
    if bad:
        subject = run_request.script.name if run_request.script else run_request.exercise
        words = f"checks did not pass for {parameter.name}={', '.join(str(point.value) for point in bad)}"
        raise CheckFailed(words, hint=f"gpucourse check {quote(subject)} --run {bad[0].run}")
    return ExitCode.DONE
