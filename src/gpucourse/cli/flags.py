"""Flags that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, overload

import typer
from typer.models import OptionInfo

from gpucourse.cli import complete
from gpucourse.errors import UnknownName, UsageError, suggest
from gpucourse.units import parse_duration


def name_gpus() -> str:
    """Return the GPUs that can be chosen, cheapest first, as a phrase for a help text: t4, l4 or a10g."""
    from gpucourse.hardware import hardware  # reading the table takes 3 ms, and most commands name no GPU

    *first, last = hardware().choices
    return f"{', '.join(first)} or {last}"


def name_two_gpus() -> str:
    """Return the names of the two cheapest GPUs, separated by a comma as on the command line: t4,l4."""
    from gpucourse.hardware import hardware

    return ",".join(hardware().choices[:2])


ModuleArgument = Annotated[str, typer.Argument(help="The number of a module: 3", autocompletion=complete.modules)]

DeployedModule = Annotated[
    str, typer.Argument(help="The number of a module whose lab is deployed: 3", autocompletion=complete.deployed_modules)
]

PaidModule = Annotated[
    str, typer.Argument(help="The number of a module with a lab on AWS: 3", autocompletion=complete.paid_modules)
]

ParametersFlag = Annotated[
    list[str] | None, typer.Option("--set", help="A parameter: --set batch_size=64", autocompletion=complete.parameters)
]

RunArgument = Annotated[
    str | None,
    typer.Argument(help="A run's id or a part of it, an exercise, or: latest (the default).", autocompletion=complete.runs),
]

RunFlag = Annotated[str | None, typer.Option("--run", help="The same as RUN.", metavar="RUN", autocompletion=complete.runs)]

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation (only paid labs need it).")]


def gpu_option(text: str = "Which lab, if the module has several") -> OptionInfo:
    """Return the option --gpu of a command for one lab of a module. `text` is the option's help."""
    option: OptionInfo = typer.Option("--gpu", help=f"{text}: {name_gpus()}.", callback=check_gpu, autocompletion=complete.gpus)
    return option


def check_gpu(name: str | None) -> str | None:
    """Return the typed GPU in lower case. Raises UnknownName if the table has no such GPU."""
    if name is None:
        return None
    from gpucourse.hardware import hardware

    if name.lower() not in {rented.choice for rented in hardware().rented}:
        raise UnknownName("GPU", name, hardware().choices)
    return name.lower()


def choice_option(flag: str, text: str, names: Sequence[str]) -> OptionInfo:
    """Return an option, such as --target, that accepts one of `names`."""

    def check(name: str | None) -> str | None:
        if name is not None and name not in names:
            raise typer.BadParameter(
                f"{name!r} is not one of {', '.join(map(repr, names))}.{suggest(name, names, cutoff=0.65)}"
            )
        return name

    option: OptionInfo = typer.Option(
        flag,
        help=text,
        metavar=f"[{'|'.join(names)}]",
        callback=check,
        autocompletion=lambda incomplete: [name for name in names if name.startswith(incomplete)],
    )
    return option


def choose_run(run: str | None, run_option: str | None) -> str | None:
    """Return the run that was typed, as an argument or after --run. Raises UsageError for two different runs."""
    if None not in {run, run_option} and run != run_option:
        raise UsageError(f"two runs were typed: {run} and --run {run_option}", hint=f"leave out --run {run_option}")
    return run or run_option


def split_list(text: str | None) -> tuple[str, ...]:
    """Return the words of a comma-separated list."""
    return tuple(filter(None, (text or "").replace(" ", "").split(",")))


def read_settings(settings: Sequence[str], hint: str) -> dict[str, str]:
    """Return the values of all --set options, by name. Raises UsageError if a setting has no equals sign, or if a name occurs
    twice."""
    values: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(f"--set {setting}: not of the form name=value", hint=hint)
        if name in values:
            raise UsageError(f"--set {name} was typed twice: {values[name]} and {value}", hint=f"type --set {name} once")
        values[name] = value
    return values


@overload
def parse_seconds(text: str, example: str, *, flag: str = "") -> float: ...
@overload
def parse_seconds(text: str | None, example: str, *, flag: str = "") -> float | None: ...
def parse_seconds(text: str | None, example: str, *, flag: str = "") -> float | None:
    """Return the typed duration in seconds, or None if no duration was typed. Raises UsageError if the text is not a duration
    longer than 0; its hint is `example`, a whole command."""
    try:
        seconds = None if text is None else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}" if flag else str(error), hint=example) from error
    if seconds == 0:
        raise UsageError(f"{flag} {text}: the time must be longer than 0 s".strip(), hint=example)
    return seconds
