"""The tree of commands. A command that was named is built alone: typer takes 15 ms to build all of them."""

from __future__ import annotations

import importlib
from typing import Annotated

import typer

from gpucourse import __version__

# Every command in the order of the help, and the file of this package that holds it.
HOMES = {
    "init": "learn",
    "doctor": "doctor",
    "list": "learn",
    "show": "learn",
    "hint": "learn",
    "reset": "edit",
    "watch": "edit",
    "deploy": "deploy",
    "run": "runs",
    "runs": "runs",
    "logs": "runs",
    "cancel": "runs",
    "break": "drill",
    "ssh": "infra",
    "status": "infra",
    "cost": "money",
    "stop": "life",
    "start": "life",
    "extend": "life",
    "allow-ip": "life",
    "keep": "life",
    "answer": "answer",
    "check": "learn",
    "quiz": "quiz",
    "grade": "grade",
    "compare": "compare",
    "report": "report",
    "destroy": "destroy",
    "leaks": "money",
    "trust": "trust",
    "dev": "dev",
}


def tree(named: str | None = None) -> typer.Typer:
    """The program with all its commands, or with the named one alone where there is such a command."""
    app = typer.Typer(
        name="gpucourse",
        help="A hands-on GPU course: deploy a lab, run the exercise on every node, keep the evidence, take everything down.",
        epilog="Options of every command: --workspace DIR, --quiet, --verbose. Start with: gpucourse list",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,  # rich's help costs 50 ms at every --help
        pretty_exceptions_enable=False,
    )
    app.callback()(_program)
    for name in [named] if named in HOMES else HOMES:
        home = importlib.import_module(f"gpucourse.cli.{HOMES[str(name)]}")
        app.command(name=name)(home.COMMANDS[name])
    return app


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpucourse {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """The options of the program itself."""
