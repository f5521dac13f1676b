"""Flags that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from gpucourse.cli import complete

JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]

ModuleArgument = Annotated[str, typer.Argument(help="The number of a module: 3", autocompletion=complete.modules)]

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Simulated nodes cost nothing: nothing is asked.")]
