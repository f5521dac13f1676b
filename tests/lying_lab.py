"""A lab of one node that lies, for tests that run whole commands as processes: deployed once, restored before each test."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.liar import Liar, Lie, liar
from tests.waiting import STUCK_S

COMMAND = [sys.executable, "-m", "gpucourse"]
RUN = ("run", "--launcher", "torchrun", "--script")


@dataclass(frozen=True)
class LyingLab:
    """A folder with a home, a script, and the workspace of a learner whose lab is ready."""

    root: Path
    node: Liar

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def script(self) -> str:
        """What the learner runs."""
        return str(self.root / "script.py")

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a command."""
        places = {"HOME": "home", "TMPDIR": "tmp", "GPUCOURSE_WORKSPACE": "workspace"}
        return {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"} | {
            name: str(self.root / place) for name, place in places.items()
        }

    def tell(self, lie: Lie) -> None:
        """Restore the workspace to its state after the deploy; from now on the node tells this lie."""
        shutil.rmtree(self.workspace, ignore_errors=True)
        shutil.copytree(self.root / "deployed", self.workspace, symlinks=True)
        self.node.asked.clear()
        self.node.lie, self.node.installed = lie, True


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LyingLab]:
    """Such a lab, for the tests of one file."""
    root = tmp_path_factory.mktemp("lying")
    for name in ("home", "tmp"):
        (root / name).mkdir()
    with liar(root) as node:
        lab = LyingLab(root, node)
        Path(lab.script).write_text("print('hello')\n")
        words = ["deploy", "3", "--hosts", f"u@127.0.0.1:{node.port}", "--trust", node.fingerprint]
        subprocess.run([*COMMAND, *words], env=lab.environ, capture_output=True, check=True, timeout=STUCK_S)
        lab.workspace.rename(root / "deployed")
        yield lab
