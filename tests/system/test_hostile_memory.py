"""What a command keeps in memory at most while a node sends the worst that it can: read of the real command's own process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from tests.liar import Liar, Lie, liar, parcel
from tests.waiting import STUCK_S

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="VmHWM is Linux's")]

MOST_MB = 200
_MEASURED = """
import sys
from gpucourse.remote import collect, jobs, patience
from gpucourse.cli.boundary import run_command
patience.AFTER_LIMIT_S, patience.MOST_EXTRA_S, collect.COLLECT_S = -590.0, 2.0, 8.0
jobs.call.__kwdefaults__["timeout_s"] = jobs.stream_verb.__wrapped__.__kwdefaults__["silence_s"] = 8.0
code = run_command(sys.argv[1:])
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(code, int(peak) // 1024, file=sys.stderr)
"""
WORST = [
    Lie(name="probe does not end", message="probe", out=b"x" * (1 << 20), after="endless"),
    Lie(name="probe is a million lists", message="probe", out=b"[" + b"[]," * 330_000 + b"0]"),
    Lie(
        name="a frame of 4 GiB",
        message="follow",
        out=frames.HEADER.pack(b"L", 1, 0, 4294967295) + bytes(1 << 20),
        after="endless",
    ),
    Lie(
        name="a thousand logs",
        message="follow",
        out=b"".join(frame(frames.LOG, n, 0, b"x") for n in range(1000)),
        after="endless",
    ),
    Lie(name="a listing of lists", message="pack", out=parcel({}, listing={"env": {"a": [[]] * 2_000_000}})),
    Lie(name="metrics of numbers", message="pack", out=parcel({"files/metrics.json": b'{"a":[' + b"1," * 8_000_000 + b"1]}"})),
    Lie(name="zeros without end", message="pack", out=bytes(1 << 20), after="endless"),
    Lie(name="errors of pack without end", message="pack", err=b"x" * (1 << 20), after="endless"),
]


@dataclass(frozen=True)
class LyingLab:
    """A learner's home, and the workspace of a lab of one node that lies."""

    root: Path
    node: Liar

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a command."""
        places = {"HOME": "home", "TMPDIR": "tmp", "GPUCOURSE_WORKSPACE": "workspace"}
        return {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"} | {
            name: str(self.root / place) for name, place in places.items()
        }

    def tell(self, lie: Lie) -> None:
        """Restore the workspace to its state after the deploy; from now on the node tells this lie."""
        shutil.rmtree(self.root / "workspace", ignore_errors=True)
        shutil.copytree(self.root / "deployed", self.root / "workspace", symlinks=True)
        self.node.asked.clear()
        self.node.lie = lie


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LyingLab]:
    """Such a lab, deployed once."""
    root = tmp_path_factory.mktemp("lying")
    for name in ("home", "tmp"):
        (root / name).mkdir()
    (root / "script.py").write_text("print('hello')\n")
    with liar(root) as node:
        lab = LyingLab(root, node)
        words = ["deploy", "3", "--hosts", f"u@127.0.0.1:{node.port}", "--trust", node.fingerprint]
        command = [sys.executable, "-m", "gpucourse", *words]
        subprocess.run(command, env=lab.environ, capture_output=True, check=True, timeout=STUCK_S)
        (root / "workspace").rename(root / "deployed")
        yield lab


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lie", WORST, ids=[lie.name for lie in WORST])
def test_no_answer_fills_the_memory(lab: LyingLab, lie: Lie) -> None:
    lab.tell(lie)
    words = [sys.executable, "-c", _MEASURED, "run", "--launcher", "torchrun", "--script", str(lab.root / "script.py")]
    done = subprocess.run(words, env=lab.environ, capture_output=True, text=True, check=True, timeout=STUCK_S)
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert lie.message in lab.node.asked
    assert code in {0, 3, 5, 6, 7}
    assert peak < MOST_MB, f"{peak} MB"
