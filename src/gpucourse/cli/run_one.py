"""`run` of one exercise: its commands alone (a dry run), a start without staying, or the whole way to the result."""

from __future__ import annotations

from gpucourse.cli.outcome import show_plan, show_started, tell
from gpucourse.cli.session import Session
from gpucourse.runs import slurm
from gpucourse.runs.prepare import Order
from gpucourse.runs.run import place, run


def run_one(session: Session, order: Order, *, detach: bool, dry_run: bool, json: bool) -> int:
    """Do one run, and give its exit code. Raises what `runs.run` raises, and CheckFailed."""
    context = session.context
    where = place(context, order)
    session.face.mode(where.mode, where.lacks)
    if slurm.is_session(context.catalog.exercise(order.exercise)[1], order):
        from gpucourse.cli.run_session import run_session

        return run_session(session, order, detach=detach, dry_run=dry_run, json=json)
    with session.face.watch() as live:
        context.watch = live
        result = run(context, order, detach=detach, dry_run=dry_run)
    if result.record is None:
        return show_plan(session, result.plan, json=json)
    if result.attended is None:
        return show_started(session, result.record, json=json)
    return tell(session, result.attended, live, json=json)
