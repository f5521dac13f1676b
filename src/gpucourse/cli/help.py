"""The layout of `--help`: commands in groups, summaries in full, and the options that every command accepts."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import typer.core

# Every command, in the order of the help. A command's file, and the function there, have its name: see
# `app.name_in_python`.
GROUPS = {
    "Learn": ("next", "init", "list", "show", "hint", "try", "watch", "answer", "quiz", "reset"),
    "Run": ("run", "runs", "logs", "cancel", "check", "compare", "open", "break"),
    "Lab": ("doctor", "deploy", "status", "ssh", "destroy", "trust"),
    "Grade": ("grade", "report"),
    "AWS": ("cost", "stop", "start", "extend", "keep", "allow-ip", "leaks"),
    "Author": ("dev",),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)

OPTIONS_OF_ALL = (
    ("--workspace DIR", "Which workspace (default: found from here, or ~/gpucourse)."),
    ("-q, --quiet", "Results, warnings and errors only."),
    ("--verbose", "More detail; an error with its traceback."),
)


_HOME = re.compile(r"(--[\w-]+=|)(~|~(?:[a-z_][\w-]*)?/.*)", re.DOTALL)


def _expand_home(word: str) -> str:
    """Return a word whose path begins with `~` as the shell would have: it leaves `--out=~/page` alone."""
    from gpucourse.workspace.locate import expand

    match = _HOME.fullmatch(word)
    return word if match is None else f"{match[1]}{expand(Path(match[2]), os.environ)}"


class CommandHelp(typer.core.TyperCommand):
    """A command whose help also lists the options of every command, and whose paths may begin with `~` everywhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the typed words; those after `--` are passed on unchanged."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*map(_expand_home, args[:end]), *args[end:]])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the command's own options, then those of every command."""
        super().format_options(ctx, formatter)
        with formatter.section("Options of every command"):
            formatter.write_dl(OPTIONS_OF_ALL)


class GroupedHelp(typer.core.TyperGroup):
    """The program, whose help shows its commands in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group under its name; a summary that is too long for the line continues below, and is never cut."""
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name.ljust(width), command.help or "") for name, command in commands if command is not None]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        with formatter.section("Options of every command"):
            formatter.write_dl(OPTIONS_OF_ALL)
