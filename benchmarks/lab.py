"""A separate workspace for a benchmark, and the command line run in it as a person would run it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GPUCOURSE = str(Path(sys.executable).with_name("gpucourse"))


class Lab:
    """One throw-away workspace."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environ = {**os.environ, "GPUCOURSE_WORKSPACE": str(root), "NO_COLOR": "1"}

    def type(self, *words: str) -> str:
        """Run a gpucourse command; its standard output. Raises CalledProcessError with what it said."""
        done = subprocess.run([GPUCOURSE, *words], env=self.environ, capture_output=True, text=True, check=False)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, ["gpucourse", *words], done.stdout, done.stderr)
        return done.stdout


@contextmanager
def lab() -> Iterator[Lab]:
    """A workspace that is gone afterwards, with everything that was deployed in it."""
    with tempfile.TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        bench_lab = Lab(Path(folder) / "workspace")
        try:
            yield bench_lab
        finally:
            bench_lab.type("destroy", "--all", "--yes", "--discard")
