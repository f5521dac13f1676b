"""`dev live`: one hour with a real AWS account, for what no mock can show. It asks first, and only a person can agree."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.cli.asking import ask, somebody_there
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, InfrastructureError, Interrupted, LeftoverError, UsageError

if TYPE_CHECKING:
    from gpucourse.labs.aws.live.hour import Hour


def run_live_hour(session: Session, most: Decimal) -> int:
    """Ask for confirmation, run the hour, and report how it ended.

    Raises LeftoverError with ids if something is left, Interrupted, InfrastructureError if a command failed or the money was
    not enough.
    """
    from gpucourse.labs.aws.live.hour import drive, prepare

    command = f"gpucourse dev live --max-usd {most}"
    if not somebody_there(session):
        raise UsageError("this spends money, so a person has to agree at a terminal", hint=command)
    context, console = session.context, session.console
    hour = prepare(context, most)
    console.note(
        f"Two labs of one GPU instance in {hour.context.settings.region}, one after the other, each taken down again. At most "
        f"${hour.meter.usd_per_hour:.2f} an hour; usually less than an hour in all."
    )
    if ask(session, f"To spend at most that much, type {most} USD: ") != f"{most} USD":
        raise Interrupted("nothing was made", hint=command)
    with console.watch() as live:
        hour.watch = live
        drive(hour)
    console.note(f"evidence: {hour.evidence_file}")
    console.note(f"{hour.outcome}; at most ${hour.meter.usd} of ${most}")
    return _verdict(hour)


def _verdict(hour: Hour) -> int:
    if hour.left:
        named = "\n".join(hour.left)
        raise LeftoverError(f"the live hour is over, and something is left:\n{named}", hint="gpucourse leaks --clean")
    if hour.outcome == "interrupted":
        raise Interrupted("the live hour was interrupted; nothing is left")
    if hour.outcome != "done":
        last = next((step for step in reversed(hour.steps) if step["code"]), None)
        said = f": {last['command']} ended with code {last['code']}" if last else ""
        raise InfrastructureError(
            f"the live hour ended early ({hour.outcome}){said}; nothing is left",
            hint=f"what it saw: {hour.evidence_file}",
        )
    return ExitCode.DONE
