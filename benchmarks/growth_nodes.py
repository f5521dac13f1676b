"""How commands grow with the nodes of a lab: `python -m benchmarks growth nodes`.

The nodes are simulated on the same machine: on two cores, what 64 of them do takes much longer than what the command does. So
the factors are of processor time, with what the command starts (Terraform and its drivers) and without; its time by the clock
and the most threads it had are beside it. Of `ROUNDS` rounds the least counts, which a busy machine changes least.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.growth import Cost, Growth
from benchmarks.lab import GPUCOURSE, Lab

NODES = (1, 8, 64)
ROUNDS = 3
STAGES = ("connect", "launch", "run", "collect")
SCRIPTS = {
    "host.py": "import os, pathlib, socket\nprint(socket.gethostname())\n"
    "pathlib.Path(os.environ['GPUCOURSE_OUT'], 'a.txt').write_text('a')\n",
    "wait.py": "import time\nprint('begun', flush=True)\ntime.sleep(3600)\n",
}
SAMPLE_S = 0.01


@dataclass(frozen=True)
class CommandCost(Cost):
    """Also the seconds by the clock, and what only /proc tells: the most threads at a time, and how much of the processor time
    was the command's own process."""

    wall_s: float
    threads: int | None
    own_s: float | None


@dataclass(frozen=True)
class NodesGrowth(Growth):
    """One command with so many nodes."""

    costs: Sequence[CommandCost]

    @property
    def factor(self) -> float:
        """What eight times the nodes cost: the last processor time divided by the one before."""
        return self.costs[-1].cpu_s / self.costs[-2].cpu_s

    def __str__(self) -> str:
        costs = "  ".join(
            f"{size}: {cost.cpu_s:.2f} s (own {cost.own_s or 0:.2f}), clock {cost.wall_s:.2f} s, {cost.threads or '?'} threads"
            for size, cost in zip(self.sizes, self.costs, strict=True)
        )
        wall = self.costs[-1].wall_s / self.costs[-2].wall_s
        last, before = (cost.own_s or 0.0 for cost in (self.costs[-1], self.costs[-2]))
        own = f" (own {last / before:.1f}x)" if before else ""
        return f"{self.command:12} {costs}  = {self.factor:.1f}x{own}, by the clock {wall:.1f}x for the last eight times"


@dataclass(frozen=True)
class StageGrowth(Growth):
    """One stage of `run`, by the clock."""

    seconds: Sequence[float] = ()

    def __str__(self) -> str:
        times = "  ".join(f"{size}: {seconds:.2f} s" for size, seconds in zip(self.sizes, self.seconds, strict=True))
        return f"  {self.command:10} {times}  by the clock = {self.seconds[-1] / self.seconds[-2]:.1f}x"


def grow_nodes() -> Iterator[Growth]:
    """`deploy`, `run` of a script that prints its host's name, `run --detach`, `cancel`, `destroy`: with 1, 8 and 64 nodes."""
    from tempfile import TemporaryDirectory

    costs: dict[str, list[CommandCost]] = {}
    stages: dict[str, list[float]] = {}
    with TemporaryDirectory(prefix="gpucourse-bench-") as folder:
        for count in NODES:
            rounds: dict[str, list[CommandCost]] = {}
            phases: dict[str, list[float]] = {name: [] for name in STAGES}
            for number in range(ROUNDS):
                bench_lab = Lab(Path(folder) / f"nodes-{count}-{number}")
                try:
                    for name, cost in _measure_lab(bench_lab, count, phases):
                        rounds.setdefault(name, []).append(cost)
                finally:
                    bench_lab.type("destroy", "--all", "--yes", "--discard")
            for name, measured in rounds.items():
                costs.setdefault(name, []).append(take_least(measured))
            for name, seconds in phases.items():
                stages.setdefault(name, []).append(min(seconds))
    sizes = [f"{count} nodes" for count in NODES]
    yield from (NodesGrowth(name, sizes, rows) for name, rows in costs.items())
    yield from (StageGrowth(name, sizes, (), seconds=seconds) for name, seconds in stages.items())


def _measure_lab(bench_lab: Lab, count: int, stages: dict[str, list[float]]) -> Iterator[tuple[str, CommandCost]]:
    bench_lab.root.mkdir()
    scripts = {name: bench_lab.root / name for name in SCRIPTS}
    for name, text in SCRIPTS.items():
        scripts[name].write_text(text, encoding="utf-8")
    launch = ("--launcher", "python", "--nodes", str(count))
    yield "deploy", measure_command(bench_lab, "deploy", "3", "--nodes", str(count))
    bench_lab.type("run", "--script", str(scripts["host.py"]), *launch)  # the agent and the files are there afterwards
    yield "run", measure_command(bench_lab, "run", "--script", str(scripts["host.py"]), *launch)
    record = max(bench_lab.root.joinpath("runs").rglob("run.json"), key=lambda path: path.stat().st_mtime_ns)
    phases = json.loads(record.read_text(encoding="utf-8"))["phases_s"]
    for name in STAGES:
        stages[name].append(phases[name])
    yield "run --detach", measure_command(bench_lab, "run", "--script", str(scripts["wait.py"]), "--detach", *launch)
    yield "cancel", measure_command(bench_lab, "cancel")
    yield "destroy", measure_command(bench_lab, "destroy", "3", "--yes")


def take_least(rounds: Sequence[CommandCost]) -> CommandCost:
    """The least of each time over all rounds, and the most memory and threads."""
    own = [cost.own_s for cost in rounds if cost.own_s is not None]
    return CommandCost(
        min(cost.cpu_s for cost in rounds),
        max(cost.memory_mb for cost in rounds),
        min(cost.wall_s for cost in rounds),
        max((cost.threads or 0 for cost in rounds), default=0) or None,
        min(own, default=None),
    )


def measure_command(bench_lab: Lab, *words: str) -> CommandCost:
    """One command from its start to its end, Terraform included where it starts one. Raises RuntimeError where it fails."""
    began = time.monotonic()
    with subprocess.Popen(
        [GPUCOURSE, *words], env=bench_lab.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        counter = ProcessWatcher(process.pid)
        counter.start()
        said = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        counter.stop()
    if process.returncode:
        raise RuntimeError(f"gpucourse {' '.join(words)} ended with code {process.returncode}: {said.decode()[-500:]}")
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    cpu_s = usage.ru_utime + usage.ru_stime
    own_s = cpu_s - counter.children_s if counter.threads else None
    return CommandCost(cpu_s, usage.ru_maxrss / scale, time.monotonic() - began, counter.threads or None, own_s)


class ProcessWatcher(threading.Thread):
    """Looks at a process until it is stopped: the most threads that it had, and the processor time of what it started and has
    waited for; only where there is /proc."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._stat, self._ended = Path(f"/proc/{pid}/stat"), threading.Event()
        self.threads, self.children_s = 0, 0.0

    def run(self) -> None:
        """Look every SAMPLE_S."""
        ticks = os.sysconf("SC_CLK_TCK")
        while not self._ended.wait(SAMPLE_S):
            with suppress(OSError, IndexError):
                words = self._stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                self.threads = max(self.threads, int(words[17]))
                self.children_s = max(self.children_s, (int(words[13]) + int(words[14])) / ticks)

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self.join()
