"""100,000 log lines per second from each of two nodes for five seconds: every byte arrives, none is slowed, memory is flat."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.lab import GPUCOURSE, Lab, lab
from benchmarks.measure import Row

SECONDS, LINES_PER_S, LINE = 5, 100_000, 96
SCRIPT = f"""
import json, os, time
line = b"x" * {LINE - 1} + b"\\n"
block, began = line * 1000, time.monotonic()
for count in range({SECONDS * LINES_PER_S // 1000}):
    os.write(1, block)
    ahead = (count + 1) * 1000 / {LINES_PER_S} - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
rank = os.environ["RANK"]
with open(os.path.join(os.environ["GPUCOURSE_OUT"], "took.json"), "w") as file:
    json.dump({{"seconds": time.monotonic() - began}}, file)
"""
MOST_MIB = 150


def measure() -> list[Row]:
    """How long the ranks took to print while they were watched, against nobody watching; and the watcher's memory."""
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        script = bench_lab.root / "shout.py"
        script.write_text(SCRIPT)
        words = ["run", "--nodes", "2", "--launcher", "python", "--script", str(script)]
        bench_lab.type(*words, "--detach")
        bench_lab.type("logs", "--rank", "0")
        _wait(bench_lab)
        alone = _slowest(bench_lab)
        peak_mib = _measure_peak_memory(bench_lab, words)
        watched = _slowest(bench_lab)
        home = [path.stat().st_size for path in _newest(bench_lab).glob("logs/*rank*.log")]
    whole = home == [SECONDS * LINES_PER_S * LINE] * 2
    return [
        Row(
            what=f"2 x {LINES_PER_S:,} lines/s, ranks watched",
            ours_s=watched,
            theirs="ranks not watched",
            theirs_s=alone,
            promise="not slowed (5%)",
            held=watched <= alone * 1.05,
        ),
        Row(
            what=f"... {sum(home):,} bytes at home",
            ours_s=watched,
            theirs="bytes printed",
            theirs_s=None,
            promise="every byte",
            held=whole,
        ),
        Row(
            what=f"... memory of the client: {peak_mib:.0f} MiB",
            ours_s=watched,
            theirs="",
            theirs_s=None,
            promise=f"below {MOST_MIB} MiB",
            held=peak_mib < MOST_MIB,
        ),
    ]


def _measure_peak_memory(bench_lab: Lab, words: list[str]) -> float:
    """Run with the logs on the screen (a pipe that is read and thrown away); the client's peak memory in MiB."""
    timed = ["/usr/bin/env", "python3", "-c", _PEAK, GPUCOURSE, *words]
    done = subprocess.run(timed, env=bench_lab.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return float(done.stdout.split()[-1]) / 1024


_PEAK = (
    "import resource, subprocess, sys\n"
    "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)\n"
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
)


def _newest(bench_lab: Lab) -> Path:
    return max((bench_lab.root / "runs" / "scripts" / "shout.py").iterdir(), key=lambda path: path.name)


def _wait(bench_lab: Lab) -> None:
    bench_lab.type("logs", "-f", _newest(bench_lab).name)


def _slowest(bench_lab: Lab) -> float:
    return max(float(json.loads(path.read_text())["seconds"]) for path in _newest(bench_lab).glob("outputs/*/took.json"))
