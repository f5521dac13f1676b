"""System parts that tests use for real: found, or the test skips with the reason. What the set-up installed must be there."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

_INSTALLED = Path(__file__).parent / ".parts"


def need(tool: str) -> str:
    """The path of a system tool. Skips the test where there is none; fails it where `make test` installed that tool itself."""
    path = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        promised = _INSTALLED.is_file() and tool in _INSTALLED.read_text(encoding="utf-8").split()
        reason = f"{tool} is not installed on this machine"
        if promised:
            pytest.fail(f"{reason}, though the set-up installed it")
        pytest.skip(reason)
    return path
