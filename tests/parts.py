"""System packages that tests use: a test skips, with the reason, if one is missing. What the set-up installed must be there."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

INSTALLED = Path(__file__).parent / ".parts"
KERNELS = Path(sys.prefix) / ".kernels"
"""What `make slow` installs into this virtual environment beside the extras `local` and `dev`."""


def need(tool: str, provider: str = "make system-deps") -> str:
    """Return the path of a system tool. Skips the test where there is none; fails it where `provider` installed that tool
    itself."""
    path = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        lack(tool, provider=provider)
    return str(path)


def need_module(name: str, provider: str = "make system-deps") -> ModuleType:
    """Return a Python module that only tests need. Skips the test where it is missing; fails it where `provider` installed
    it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        lack(name, provider=provider)
        raise


def slow_after(count: int, *values: object) -> list[object]:
    """Values of a parameter, of which only the first `count` are part of `make test`."""
    return [*values[:count], *(pytest.param(value, marks=pytest.mark.slow) for value in values[count:])]


def needs_module(name: str, *, installed: Path = INSTALLED) -> pytest.MarkDecorator:
    """Return a mark for tests that use a module of the extra `local`: where it is missing they skip, unless the set-up provided
    it."""
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing and not _provides(installed, name), reason=f"{name} is not there on this machine")


@functools.cache
def needs_namespaces() -> pytest.MarkDecorator:
    """Return a mark for tests that run a command in namespaces of its own, which some computers forbid."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "mount", "-t", "proc", "proc", "/proc"]
    result = shutil.which("unshare") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    return pytest.mark.skipif(not result, reason="namespaces are not allowed on this machine")


def _provides(installed: Path, part: str) -> bool:
    return installed.is_file() and part in installed.read_text(encoding="utf-8").split()


def lack(part: str, *, installed: Path = INSTALLED, provider: str = "make system-deps") -> NoReturn:
    """End the test because a part is missing: it skips, or fails where `installed` says that the set-up provided the part."""
    reason = f"{part} is not there on this machine"
    if _provides(installed, part):
        pytest.fail(f"{reason}, though the set-up provided it: {provider}")
    pytest.skip(f"{reason}: {provider} provides it where it can", allow_module_level=True)
