"""The command `edit`: opens the learner's part of an exercise in an editor."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.session import Session
from gpucourse.errors import MissingError, UnknownName, UsageError

_EDITOR_VARIABLES = ("VISUAL", "EDITOR")
_DEFAULT_EDITOR = "code"


def edit(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
    part: Annotated[
        str | None, typer.Option("--part", help="Only this part, if you write several.", autocompletion=complete.parts)
    ] = None,
) -> None:
    """Open your part of an exercise in your editor."""
    from gpucourse.runs.parts import list_part_files

    subject = session.require_exercise(exercise)
    if not subject.yours:
        raise UsageError(f"{subject.id} has no part for you to write", hint=f"gpucourse show {subject.id}")
    files = list_part_files(session.context, subject)
    if part is not None and part not in files:
        raise UnknownName("part", part, files)
    paths = [file for name, file in files.items() if part in {None, name}]
    at_terminal = session.console.out.terminal and sys.stdin.isatty()
    editor = _find_editor(os.environ, paths[0]) if at_terminal else []
    session.console.text("".join(f"{path}\n" for path in paths))
    if at_terminal and not editor:
        session.console.note("No editor is set: open this file yourself, or type export EDITOR=vim first.")
    session.console.note(f"When it is saved: {subject.judge_command}")
    if editor:  # from here on this process is the editor: its terminal, its signals, its exit code
        try:
            os.execv(editor[0], [*editor, *map(str, paths)])
        except OSError as error:  # such as a script without #!
            raise MissingError(f"{editor[0]} cannot be started: {error.strerror}", hint="export EDITOR=vim") from error


def _find_editor(environ: Mapping[str, str], file: Path) -> list[str]:
    """Return the program and the options in $VISUAL or $EDITOR, otherwise `code` if it is installed, otherwise an empty list.

    Raises MissingError if the program in the variable is not installed, and UsageError if the variable has an unclosed quote.
    """
    variable = next((name for name in _EDITOR_VARIABLES if environ.get(name, "").strip()), None)
    try:
        words = shlex.split(environ[variable]) if variable else [_DEFAULT_EDITOR]
    except ValueError as error:
        raise UsageError(f"${variable} cannot be read: {error}", hint=f"export {variable}=vim") from error
    program = shutil.which(words[0])
    if program is None and variable:
        raise MissingError(
            f"{words[0]}, the editor in ${variable}, is not installed", hint=f"export {variable}=PROGRAM, or open {file}"
        )
    return [program, *words[1:]] if program else []
