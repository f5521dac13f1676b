"""Commands about labs that stand: status, ssh."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Optional

import typer

from gpucourse.cli.flags import JsonFlag, ModuleArgument
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode, MissingError


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds (on AWS ten), until Ctrl-C.")] = False,
    json: JsonFlag = False,
) -> int:
    """Every lab and node, as it is right now; labs on AWS as the account says."""
    from gpucourse.labs.status import status as act
    from gpucourse.ui.views.lab import status as view

    session = current()
    while True:
        # Not with --watch: to the idle agent on a node each question is somebody at work there.
        found = act(session.context, ask_nodes=not watch)
        if json:
            document = {"stacks": [_stack_document(one) for one in found.stacks], "warnings": found.warnings}
            session.face.document(document)
        if watch and session.face.moving(session.face.out):
            session.face.out.write("\x1b[H\x1b[J")  # from the top of the screen, so that it changes in place
        session.face.show(view(found.stacks, unreadable=found.unreadable))
        for warning in found.warnings:
            session.face.warn(warning)
        if not watch:
            return ExitCode.DONE
        session.context.stop.wait(10.0 if any(one.cloud for one in found.stacks) else 2.0)


def ssh(
    module: ModuleArgument,
    node: Annotated[str, typer.Option("--node", help="Which node: 1 or node1.")] = "0",
    command: Annotated[Optional[list[str]], typer.Argument(help="After --: one command instead of a shell.")] = None,  # noqa: UP045
) -> int:
    """A shell on a node, or one command."""
    from gpucourse.labs.ssh import connection

    session = current()
    client = shutil.which("ssh")
    if client is None:
        raise MissingError("OpenSSH's client is not installed", hint="install it: apt install openssh-client")
    config, name = connection(session.context, module, node)
    # From here on this process is ssh: its terminal, its signals, its exit code.
    os.execv(client, [client, "-F", str(config), name, *(command or [])])


def _stack_document(one: object) -> dict[str, object]:
    return dict(vars(one)) | {"healthy": getattr(one, "healthy", False)}


COMMANDS = {"status": status, "ssh": ssh}
