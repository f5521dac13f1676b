"""The command `ssh`: opens a shell on a node, or runs one command there."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import DeployedModule
from gpucourse.cli.session import Session


def ssh(
    session: Session,
    module: DeployedModule,
    node: Annotated[str, typer.Option("--node", help="Which node: 1 or node1.", autocompletion=complete.nodes)] = "0",
    command: Annotated[list[str] | None, typer.Argument(help="After --: one command instead of a shell.")] = None,
) -> int:
    """Open a shell on a node, or run one command."""
    from gpucourse.labs.ssh import connection
    from gpucourse.remote.transport import list_terminal_words

    config, place = connection(session.look(), module, node)
    # One word is a command line, as for ssh. Several words are arguments, each of which arrives as it was typed.
    line = shlex.join(command) if command and len(command) > 1 else "".join(command or ())
    words = list_terminal_words(place, config, line)
    # From here on this process is that program: its terminal, its signals, its exit code.
    os.execv(words[0], words)
