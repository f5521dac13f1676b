"""The command `init`: creates a workspace, or adds or removes its line in ~/.ssh/config."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli.session import Session
from gpucourse.errors import UsageError
from gpucourse.workspace.locate import find_entry, find_new_root, find_other


def init(
    session: Session,
    folder: Annotated[
        Path | None, typer.Argument(help="The folder (default: GPUCOURSE_WORKSPACE, else the current one).")
    ] = None,
    ssh_include: Annotated[
        bool | None,
        typer.Option(
            "--ssh-include/--no-ssh-include",
            help="Add the line to ~/.ssh/config that lets plain ssh reach the nodes, or remove it; then stop.",
        ),
    ] = None,
) -> None:
    """Make a workspace: settings, and your own copies of the exercises."""
    from gpucourse.cli.ssh_include import decide
    from gpucourse.learning.copies import copy_exercises

    session.creates = True
    if folder is not None and session.options.workspace is not None and ssh_include is None:
        raise UsageError("init accepts one folder: as its argument or as --workspace", hint="gpucourse init DIR")
    if folder is not None or ssh_include is None:
        session.root = find_new_root(folder or session.options.workspace, os.environ)
    if ssh_include is not None:
        decide(session, included=ssh_include)
        return
    context = session.context
    copies = copy_exercises(context)
    session.console.note(f"your copies of {copies} exercise files are in {context.paths.exercises}")
    if (existing := find_other(session.root, os.environ)) is not None:
        session.console.note(f"commands that you type outside {session.root} use your other workspace, {existing}")
    session.console.note(f"settings: {context.paths.settings}")
    steps = [find_entry(session.root, os.environ), session.find_step()]
    session.console.note(f"Next: {' && '.join(filter(None, steps))}")
