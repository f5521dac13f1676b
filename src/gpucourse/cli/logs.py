"""The command `logs`."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import RunArgument, parse_seconds
from gpucourse.cli.session import session_of
from gpucourse.errors import UsageError


def logs(
    ctx: typer.Context,
    run: RunArgument = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it has ended.")] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", help="Only this rank, raw.", show_default=False, autocompletion=complete.ranks)
    ] = None,
    fold: Annotated[bool, typer.Option("--fold", help="Fold lines that several ranks share into one.")] = False,
    times: Annotated[bool, typer.Option("--times", help="In order of arrival, with times.")] = False,
    tail: Annotated[
        int | None,
        typer.Option("--tail", "-n", min=0, help="Only the last N lines of each rank.", metavar="N", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", help="Only what arrived in the run's last 30s, 5m or 1h.", metavar="TIME", show_default=False),
    ] = None,
    grep: Annotated[
        str | None,
        typer.Option("--grep", help="Only lines that match a regular expression.", metavar="PATTERN", show_default=False),
    ] = None,
) -> int:
    """Show the logs of a run: live, by rank, or folded."""
    from gpucourse.cli.show_logs import show_logs
    from gpucourse.runs.logs import LogPart

    if follow and fold:
        raise UsageError("--follow and --fold cannot be combined", hint="gpucourse logs --fold after the run has ended")
    if times and (follow or fold):
        raise UsageError("--times can be combined with --rank only", hint="gpucourse logs --times after the run has ended")
    if follow and grep is not None:
        raise UsageError("--follow and --grep cannot be combined", hint="gpucourse logs --grep PATTERN after the run has ended")
    seconds = parse_seconds(since, "gpucourse logs --since 5m", flag="--since")
    part = LogPart(tail=tail, since=seconds, grep=_parse_pattern(grep))
    return show_logs(session_of(ctx), run, follow=follow, rank=rank, fold=fold, times=times, part=part)


def _parse_pattern(pattern: str | None) -> re.Pattern[bytes] | None:
    """Compile the pattern of --grep. Raises UsageError if it is not a regular expression."""
    try:
        return None if pattern is None else re.compile(pattern.encode(errors="surrogateescape"))
    except re.error as error:
        raise UsageError(f"--grep '{pattern}': {error}", hint=f"gpucourse logs --grep '{re.escape(pattern or '')}'") from error
