"""The tree of commands. Importing it loads typer and nothing that a command needs only later."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse import __version__
from gpucourse.cli import infra, learn, runs

app = typer.Typer(
    name="gpucourse",
    help="A hands-on GPU course: deploy a lab, run the exercise on every node, keep the evidence, take everything down.",
    epilog="Options of every command: --workspace DIR, --quiet, --verbose. Start with: gpucourse list",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,  # rich's help costs 50 ms at every --help
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpucourse {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """The options of the program itself."""


for module in (learn, infra, runs):
    for command in module.COMMANDS:
        app.command(name=command.__name__.strip("_"))(command)
