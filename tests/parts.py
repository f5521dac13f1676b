"""System packages that tests use. If one is missing, the test is skipped with the reason; if the set-up should have installed
it, the test fails.
"""

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
"""The packages that `make slow` installs into this virtual environment in addition to the extras `local` and `dev`."""


def need(tool: str, provider: str = "make system-deps") -> str:
    """Return the path of a system tool. If it is missing, skip the test, or fail it if `provider` should have installed it."""
    path = shutil.which(tool) or shutil.which(tool, path="/usr/sbin:/sbin:/usr/local/sbin")
    if path is None:
        lack(tool, provider=provider)
    return str(path)


def need_module(name: str, provider: str = "make system-deps") -> ModuleType:
    """Return a Python module that only tests need. If it is missing, skip the test; fail it if `provider` should have installed
    it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        lack(name, provider=provider)
        raise


def slow_after(count: int, *values: object) -> list[object]:
    """Return the values of a parameter. Only the first `count` values are part of `make test`."""
    return [*values[:count], *(pytest.param(value, marks=pytest.mark.slow) for value in values[count:])]


def needs_module(name: str, *, installed: Path = INSTALLED) -> pytest.MarkDecorator:
    """Return a mark for tests that use a module of the extra `local`. Without the module they are skipped, unless the set-up
    should have installed it.
    """
    missing = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(missing and not _provides(installed, name), reason=f"{name} is not installed on this machine")


@functools.cache
def needs_namespaces() -> pytest.MarkDecorator:
    """Return a mark for tests that run a command in its own namespaces, which some computers forbid."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "mount", "-t", "proc", "proc", "/proc"]
    result = shutil.which("unshare") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    return pytest.mark.skipif(not result, reason="namespaces are not allowed on this machine")


def _provides(installed: Path, part: str) -> bool:
    return installed.is_file() and part in installed.read_text(encoding="utf-8").split()


def lack(part: str, *, installed: Path = INSTALLED, provider: str = "make system-deps") -> NoReturn:
    """End the test because a part is missing: skip it, or fail it if `installed` says that the set-up provided the part."""
    reason = f"{part} is missing on this machine"
    if _provides(installed, part):
        pytest.fail(f"{reason}, though the set-up provided it: {provider}")
    pytest.skip(f"{reason}: {provider} provides it where it can", allow_module_level=True)
