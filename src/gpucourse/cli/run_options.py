"""The options of `run` for how a script is started and judged: variables, torchrun's own options, the script's own checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from gpucourse.errors import UsageError

EnvironmentFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help="A variable for every rank: --env NCCL_DEBUG=INFO; --env NAME passes on your own, whose value no file holds.",
        show_default=False,
    ),
]

TorchrunFlag = Annotated[
    str | None,
    typer.Option("--torchrun", help="torchrun's own options: --torchrun '--max-restarts=2'", show_default=False),
]

ChecksFlag = Annotated[
    Path | None,
    typer.Option("--checks", help="With --script: a YAML file with checks, as in a manifest.", show_default=False),
]


_OF_CODE = ("PYTHON", "LD_", "DYLD_", "BASH_ENV")  # bash reads the last one's file before a file for sbatch


class StartOptions(TypedDict):
    """The part of a request that these options make."""

    environment: dict[str, str]
    handed_on: tuple[str, ...]
    torchrun: str
    checks: tuple[Mapping[str, Any], ...]


def read_start_options(
    env: Sequence[str] | None, torchrun: str | None, checks: Path | None, *, script: Path | None, here: Mapping[str, str]
) -> StartOptions:
    """Read the values of --env, --torchrun and --checks; `here` is this computer's environment.

    Raises UsageError, ManifestError.
    """
    from gpucourse.launch.environment import read_variables
    from gpucourse.launch.torchrun import read_options

    if checks is not None and script is None:
        raise UsageError(
            "--checks is for a script of your own: an exercise has its own checks",
            hint="gpucourse run --script FILE --checks FILE",
        )
    environment, handed_on = read_variables(env or (), here)
    if script is None:
        _refuse_code(*environment, *handed_on)
    read_options(torchrun or "")  # raises before anything else is read
    return StartOptions(
        environment=environment,
        handed_on=handed_on,
        torchrun=torchrun or "",
        checks=_read_checks(checks) if checks is not None else (),
    )


def _refuse_code(*names: str) -> None:
    """Refuse a variable by which other code than the exercise's would run. Raises UsageError."""
    for name in names:
        if name.startswith(_OF_CODE):
            raise UsageError(
                f"--env {name} changes which code runs, and an exercise runs its own",
                hint="it is for a script of your own: --script FILE",
            )


def _read_checks(path: Path) -> tuple[Mapping[str, Any], ...]:
    from gpucourse.course.own_checks import read_own_checks

    return read_own_checks(path)
