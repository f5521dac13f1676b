"""The command `status`."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode


def status(
    ctx: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds (ten on AWS) until Ctrl-C.")] = False,
    json: JsonFlag = False,
) -> int:
    """Every lab and node as it is now; for AWS, as the account says."""
    from gpucourse.labs.status import status as act
    from gpucourse.ui.views.status import status as view

    session = session_of(ctx)
    while True:
        # Not with --watch: the idle agent on a node counts each connection as use of the node.
        status = act(session.look(), ask_nodes=not watch)
        if json:
            from gpucourse.cli.documents.describe import describe_stack

            document = {"stacks": [describe_stack(stack) for stack in status.stacks], "warnings": status.warnings}
            session.console.document(document)
        if watch and session.console.can_redraw(session.console.out):
            session.console.out.write("\x1b[H\x1b[J")  # from the top of the screen, so that it changes in place
        session.console.show(view(status.stacks, unreadable=status.unreadable))
        for warning in status.warnings:
            session.console.warn(warning)
        if not watch:
            return ExitCode.DONE
        session.context.stop.wait(10.0 if any(stack.cloud for stack in status.stacks) else 2.0)
