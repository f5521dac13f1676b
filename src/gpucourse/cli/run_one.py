"""`run` of one exercise: prints its commands only (a dry run), starts it and returns, or follows it to its result."""

from __future__ import annotations

from gpucourse.cli.outcome import show_plan, show_started, tell
from gpucourse.cli.session import Session
from gpucourse.runs.prepare import RunRequest, resolve
from gpucourse.runs.run import locate_run, run


def run_one(session: Session, run_request: RunRequest, *, detach: bool, dry_run: bool, json: bool) -> int:
    """Do one run, and return its exit code. Raises the errors of `runs.run`, and CheckFailed."""
    context = session.context
    resolved = resolve(context, run_request)
    location = locate_run(context, resolved)
    session.console.mode(location.mode, location.lacks)
    if resolved.launcher.is_terminal:
        from gpucourse.cli.run_session import run_session

        return run_session(session, resolved, detach=detach, dry_run=dry_run, json=json)
    with session.console.watch() as live:
        context.watch = live
        result = run(context, resolved, detach=detach, dry_run=dry_run)
    session.plot_worker.leave()
    if result.record is None:
        return show_plan(session, result.plan, json=json)
    if result.followed_run is None:
        return show_started(session, result.record, json=json)
    return tell(session, result.followed_run, live, json=json)
