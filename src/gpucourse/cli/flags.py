"""Flags that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

JsonFlag = Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")]
