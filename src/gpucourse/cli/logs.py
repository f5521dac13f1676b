"""The command `logs`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import RunArgument
from gpucourse.cli.session import session_of
from gpucourse.errors import UsageError


def logs(
    ctx: typer.Context,
    run: RunArgument = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the run until it has ended.")] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", help="Only this rank, raw.", show_default=False, autocompletion=complete.ranks)
    ] = None,
    fold: Annotated[bool, typer.Option("--fold", help="Show lines that ranks share only once.")] = False,
    times: Annotated[bool, typer.Option("--times", help="In the order of arrival, with seconds.")] = False,
) -> int:
    """The logs of a run: live, by rank, or folded."""
    from gpucourse.cli.show_logs import show_logs

    if follow and fold:
        raise UsageError("--follow and --fold cannot be combined", hint="gpucourse logs --fold after the run has ended")
    if times and (follow or fold):
        raise UsageError("--times can be combined with --rank only", hint="gpucourse logs --times after the run has ended")
    return show_logs(session_of(ctx), run, follow=follow, rank=rank, fold=fold, times=times)
