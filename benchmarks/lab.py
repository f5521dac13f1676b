"""A separate workspace for a benchmark, and the command line run in it as a person would run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

GPUCOURSE = str(Path(sys.executable).with_name("gpucourse"))


@dataclass(frozen=True)
class Cost:
    """The cost of one command: elapsed seconds, processor seconds, and peak memory in MB."""

    wall_s: float
    cpu_s: float
    memory_mb: float


class Lab:
    """A temporary workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {**os.environ, "GPUCOURSE_WORKSPACE": str(root), "NO_COLOR": "1"}

    def type(self, *words: str) -> str:
        """Run a gpucourse command, and return its standard output. Raises CalledProcessError with its messages."""
        done = subprocess.run([GPUCOURSE, *words], env=self.environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, ["gpucourse", *words], done.stdout, done.stderr)
        return done.stdout

    def measure(self, *words: str) -> Cost:
        """Run a gpucourse command, discard its output, and return its cost. Raises RuntimeError.

        Linux adds the memory of the process that starts a command to the command's own, so this process has to stay small.
        """
        began = time.perf_counter()
        with subprocess.Popen(
            [GPUCOURSE, *words], env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdout is not None
            while process.stdout.read(1 << 20):
                pass
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"gpucourse {' '.join(words)} ended with code {process.returncode}")
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return Cost(time.perf_counter() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit)


@contextmanager
def lab() -> Iterator[Lab]:
    """Yield a workspace. Afterwards, the workspace and everything that was deployed in it are removed."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        bench_lab = Lab(Path(folder) / "workspace")
        try:
            yield bench_lab
        finally:
            bench_lab.type("destroy", "--all", "--yes", "--discard")
