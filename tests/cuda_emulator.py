"""The CUDA emulator, which is compiled only once for all test processes, in 6 s of processor time."""

from __future__ import annotations

import fcntl
import functools
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from tests.parts import need

SHARED = Path(__file__).parents[1] / "exercises" / "shared"


@functools.cache
def import_emulator() -> Any:
    """Return the package that exercises import, whose object is in the cache of all tests. Skip the test without g++."""
    need("g++")
    sys.path.insert(0, str(SHARED))
    try:
        emulator = importlib.import_module("emulator")
    finally:
        sys.path.remove(str(SHARED))
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "first"  # all test processes share it: tests/conftest.py
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "first.cu"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other processes wait until the first has compiled it
        source.write_text("int main() {}\n", encoding="utf-8")
        emulator.build([source], folder=folder)
    return emulator
