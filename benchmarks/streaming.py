"""Print 100,000 log lines per second on each of two nodes for five seconds: every byte arrives, no rank is slowed down, and
memory stays flat.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lab import Lab, lab
from benchmarks.measure import Row

SECONDS, LINES_PER_S, LINE = 5, 100_000, 96
MAX_MEMORY_MB, MAX_SLOWING = 150.0, 1.05


def measure() -> Iterator[Row]:
    """Yield how long the ranks took to print while they were followed, the bytes that arrived, and the follower's memory."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        script = bench_lab.root / "shout.py"
        script.write_text(_write_script())
        words = ("run", "--nodes", "2", "--launcher", "python", "--script", str(script))
        bench_lab.type(*words, "--detach")
        bench_lab.measure("logs", "-f", _find_newest(bench_lab).name)
        alone_s = _find_slowest(bench_lab)
        memory_mb = bench_lab.measure(*words).memory_mb
        watched_s = _find_slowest(bench_lab)
        size = sum(path.stat().st_size for path in _find_newest(bench_lab).glob("logs/*rank*.log"))
    what = f"2 x {LINES_PER_S:,} lines a second"
    yield Row(what=what, ours=watched_s, theirs="not watched", theirs_value=alone_s, limit=alone_s * MAX_SLOWING)
    yield Row(what=f"{what}, bytes", ours=size, unit="bytes", limit=2 * SECONDS * LINES_PER_S * LINE, is_minimum=True)
    yield Row(what=f"{what}, memory", ours=memory_mb, unit="MB", limit=MAX_MEMORY_MB)


def _write_script() -> str:
    """Return a script that prints lines at that pace and records how long it took."""
    return f"""
import json, os, time
block, began = (b"x" * {LINE - 1} + b"\\n") * 1000, time.monotonic()
for count in range({SECONDS * LINES_PER_S // 1000}):
    os.write(1, block)
    time.sleep(max(0, (count + 1) * 1000 / {LINES_PER_S} - (time.monotonic() - began)))
with open(os.path.join(os.environ["GPUCOURSE_OUT"], "took.json"), "w") as file:
    json.dump({{"seconds": time.monotonic() - began}}, file)
"""


def _find_newest(bench_lab: Lab) -> Path:
    return max((bench_lab.root / "runs" / "scripts" / "shout.py").iterdir(), key=lambda path: path.name)


def _find_slowest(bench_lab: Lab) -> float:
    files = _find_newest(bench_lab).glob("outputs/*/took.json")
    return max(float(json.loads(path.read_text())["seconds"]) for path in files)
