"""The command `trust`: lists, adds and removes trusted folders of other users."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import UsageError


class TrustedFolders(JsonDocument):
    """The output of `trust`: the folders of other users that may be used."""

    trusted: list[str]


def trust(
    session: Session,
    folders: Annotated[list[str] | None, typer.Argument(help="Folders of workspaces or courses.", metavar="DIR...")] = None,
    every: Annotated[bool, typer.Option("--list", help="Show what is trusted.")] = False,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", help="Stop trusting this folder.", autocompletion=complete.list_trusted_folders),
    ] = None,
) -> None:
    """Trust another user's workspace or course to run code as you."""
    from gpucourse.ui.views.trust import trust_list as view
    from gpucourse.workspace import trust as records

    if not (folders or every or remove):
        raise UsageError("trust needs a folder, --list or --remove DIR", hint="gpucourse trust --list")
    for name in remove or ():
        session.console.note(f"no longer trusted: {records.distrust(Path(name).expanduser(), os.environ)}")
    for name in folders or ():
        session.console.note(f"trusted: {records.trust(Path(name).expanduser(), os.environ)}")
    trusted = records.list_trusted_folders(os.environ)
    session.console.document(TrustedFolders(trusted=list(trusted)))
    if every:
        session.console.show(view(trusted))
