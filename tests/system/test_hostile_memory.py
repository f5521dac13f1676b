"""What a command keeps in memory at most while a node sends the worst that it can: read of the real command's own process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import frame
from tests.liar import END, Lie, as_json, parcel
from tests.lying_lab import RUN, LyingLab, lab
from tests.waiting import STUCK_S

__all__ = ["lab"]  # a fixture

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
_NAMES = "n" * 400
_LOGS = b"".join(frame(frames.LOG, number, 0, b"x") for number in range(1000))
_HUGE = frames.HEADER.pack(b"L", 1, 0, 0xFFFFFFFF) + bytes(1 << 20)
_LEFT = [{"name": _NAMES, "reason": _NAMES}] * 4000
WORST = [
    Lie(name="probe does not end", message="probe", out=b"x" * (1 << 20), after="endless"),
    Lie(name="probe has errors that do not end", message="probe", err=b"x" * (1 << 20), after="endless"),
    Lie(name="probe is a million lists", message="probe", out=b"[" + b"[]," * 330_000 + b"0]"),
    Lie(name="probe is many names", message="probe", out=as_json({str(number): [] for number in range(50_000)})),
    Lie(name="store does not end", message="store", out=b"s-\n" * 300_000, after="endless"),
    Lie(name="frames of 1 MiB without end", message="follow", out=frame(frames.LOG, 1, 0, bytes(1 << 20)), after="endless"),
    Lie(
        name="a frame of 4 GiB",
        message="follow",
        out=frames.HEADER.pack(b"L", 1, 0, 4294967295) + bytes(1 << 20),
        after="endless",
    ),
    Lie(name="signs of life without end", message="follow", out=frame(frames.BEAT) * 20_000, after="endless"),
    Lie(
        name="a thousand logs",
        message="follow",
        out=b"".join(frame(frames.LOG, n, 0, b"x") for n in range(1000)),
        after="endless",
    ),
    Lie(name="errors of follow without end", message="follow", err=b"x" * (1 << 20), after="endless"),
    Lie(name="jobs without end", message="follow", out=frame(frames.END, 0, 0, as_json({**END, "jobs": [[]] * 200_000}))),
    Lie(name="a listing of names", message="pack", out=parcel({}, listing={"left": _LEFT})),
    Lie(name="a listing of lists", message="pack", out=parcel({}, listing={"env": {"a": [[]] * 2_000_000}})),
    Lie(name="metrics of numbers", message="pack", out=parcel({"files/metrics.json": b'{"a":[' + b"1," * 8_000_000 + b"1]}"})),
    Lie(name="two thousand files", message="pack", out=parcel({f"files/{number:0200}": b"" for number in range(2000)})),
    Lie(name="zeros without end", message="pack", out=bytes(1 << 20), after="endless"),
    Lie(name="errors of pack without end", message="pack", err=b"x" * (1 << 20), after="endless"),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("lie", WORST, ids=[lie.name for lie in WORST])
def test_no_answer_fills_the_memory(lab: LyingLab, lie: Lie) -> None:
    lab.tell(lie)
    words = [sys.executable, "-c", _MEASURED, *RUN, lab.script]
    done = subprocess.run(words, env=lab.environ, capture_output=True, text=True, check=True, timeout=STUCK_S)
    code, peak = map(int, done.stderr.splitlines()[-1].split())
    assert lie.message in lab.node.asked
    assert code in {0, 3, 5, 6, 7}
    assert peak < MOST_MB, f"{peak} MB"
