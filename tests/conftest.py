"""Set-up that all tests share, as plain pytest and its workers run them.

Ctrl-C works as in a terminal, even if the tests were started in the background with SIGINT ignored. Python's garbage collector
examines only objects that are created after the tests were collected, because going through all modules and tests again and
again took a third of the time. Temporary files are in memory if this computer has a file system for that: creating a file there
takes a twentieth of the processor time, and nothing waits for a disk.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from tests.forks import SHARED

MEMORY = "/dev/shm"
ENOUGH = 6 << 30

signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()
os.environ["OMP_NUM_THREADS"] = "1"  # for tiny tensors, torch's threads would only wait for each other in busy loops


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder that all test processes share, in the process that starts the others."""
    if hasattr(config, "workerinput"):
        return
    if "TMPDIR" not in os.environ and _is_usable(MEMORY):
        os.environ["TMPDIR"], tempfile.tempdir = MEMORY, None
    folder = tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True)  # short: sockets are below it
    config.add_cleanup(folder.cleanup)
    os.environ[SHARED] = folder.name
    os.environ["XDG_CACHE_HOME"] = f"{folder.name}/cache"  # so that the CUDA emulator compiles each program only once


def _is_usable(folder: str) -> bool:
    """Return whether programs may run in this folder in memory, and enough memory is free. In a container, often neither is
    true."""
    with suppress(OSError):
        facts = os.statvfs(folder)  # says only how much the folder may contain
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
        is_large = min(facts.f_bavail * facts.f_frsize, int(lines["MemAvailable"].split()[0]) << 10) >= ENOUGH
        return is_large and not facts.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK | os.X_OK)
    return False


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of workers: one per core for `-n logical`, two per core for `-n auto`, because tests wait for nodes and
    for Terraform. Each worker collects all tests: the labs in 1.4 s of processor time, the units in 4.7 s."""
    return min(os.cpu_count() or 1, 8) * (1 if config.getoption("numprocesses") == "logical" else 2)


def pytest_collection_finish() -> None:
    """Exclude all objects that exist now from garbage collection."""
    gc.freeze()
    gc.enable()
