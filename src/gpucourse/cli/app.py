"""The tree of commands. Only the typed command is built, because typer needs 15 ms to build all of them."""

from __future__ import annotations

import builtins
import importlib
import inspect
import keyword
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter
from typing import Annotated, Any

import typer

from gpucourse import __version__
from gpucourse.cli.complete import NUMBERED, spell_number
from gpucourse.cli.help import COMMANDS, WITHOUT_JSON, CommandHelp, GroupedHelp

_JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]


def tree(command_name: str | None = None) -> typer.Typer:
    """Return the program with all its commands, or with only the named one if there is such a command."""
    app = typer.Typer(
        name="gpucourse",
        help="A hands-on GPU course: deploy a lab, run the exercise on every node, keep the evidence, take everything down.",
        epilog="Start with: gpucourse next. One command in detail: gpucourse help run",
        cls=GroupedHelp,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,  # rich would make every --help 50 ms slower
        pretty_exceptions_enable=False,
    )
    app.callback()(_program)
    for name in [command_name] if command_name in COMMANDS else COMMANDS:
        app.command(name=name, cls=CommandHelp)(find_function(name))
    return app


def find_function(command: str) -> Callable[..., object]:
    """Return a command's function, wrapped for typer. The wrapper accepts typer's context, which contains the session, and
    --json, which `session.split` has already read."""
    name = name_in_python(command)
    function: Callable[..., object] = getattr(importlib.import_module(f"gpucourse.cli.{name}"), name)

    @wraps(function)
    def call(ctx: typer.Context, *, json: bool = False, **options: Any) -> object:  # noqa: ARG001 (typer passes it)
        return function(ctx.obj, **spell_numbers(options))

    _, *parameters = inspect.signature(function, eval_str=True).parameters.values()
    context = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    json = Parameter("json", Parameter.KEYWORD_ONLY, annotation=_JsonFlag, default=False)
    extra_options = [] if command in WITHOUT_JSON else [json]
    call.__signature__ = inspect.Signature([context, *parameters, *extra_options])  # type: ignore[attr-defined]
    return call


def spell_numbers(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a command, with the numbers of modules and exercises spelt as in the course, because people type
    `b.2` for B.2. A single letter names a module, so it is not changed in an argument that names a run. The arguments of a
    learner's own script are not changed either."""

    def spell(value: Any, name: str) -> Any:
        if isinstance(value, str):
            return value if len(value) == 1 and name in {"run", "runs"} else spell_number(value)
        return [spell(word, name) for word in value] if isinstance(value, list) else value

    if options.get("script") or options.get("python_module"):  # then `exercise` contains the first argument of the script
        return dict(options)
    return {name: spell(value, name) if name in NUMBERED else value for name, value in options.items()}


def name_in_python(command: str) -> str:
    """Return a command's name in Python, such as `allow_ip` for `allow-ip`. A word that Python already uses gets an underscore:
    `break_` or `list_`."""
    name = command.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"gpucourse {__version__}")
        raise typer.Exit


def _program(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Accept the options of the program as a whole."""
