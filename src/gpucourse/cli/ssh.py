"""The command `ssh`."""

from __future__ import annotations

import os
import shutil
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import DeployedModule
from gpucourse.cli.session import Session
from gpucourse.errors import MissingError


def ssh(
    session: Session,
    module: DeployedModule,
    node: Annotated[str, typer.Option("--node", help="Which node: 1 or node1.", autocompletion=complete.nodes)] = "0",
    command: Annotated[list[str] | None, typer.Argument(help="After --: one command instead of a shell.")] = None,
) -> int:
    """Open a shell on a node, or run one command."""
    from gpucourse.labs.ssh import connection

    client = find_client()
    config, name = connection(session.context, module, node)
    # From here on this process is ssh: its terminal, its signals, its exit code.
    os.execv(client, [client, "-F", str(config), name, *(command or [])])


def find_client() -> str:
    """Return the path of ssh. Raises MissingError if it is not installed."""
    client = shutil.which("ssh")
    if client is None:
        raise MissingError("OpenSSH's client is not installed", hint="install it: apt install openssh-client")
    return client
