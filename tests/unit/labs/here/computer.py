"""A computer whose driver and Python list some GPUs."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from pathlib import Path

from gpucourse.context import Context
from tests.unit.labs.aws.fakes import context_in


def make_program(path: Path, message: str, code: int = 0) -> Path:
    """Return a program that always prints this message."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{message}\nEND\nexit {code}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def make_python(folder: Path, torch: str, gpus: Sequence[str]) -> str:
    """Return a Python whose torch sees these GPUs."""
    return str(make_program(folder / "bin" / "python", json.dumps({"torch": torch, "gpus": list(gpus)})))


def with_python(folder: Path, torch: str, gpus: Sequence[str]) -> Context:
    """Return a workspace whose settings name such a Python."""
    context = context_in(folder)[0]
    context.opened.settings = context.settings.model_copy(update={"node_python": make_python(folder, torch, gpus)})
    return context
