"""How the cost of a command grows with the amount of data: `python -m benchmarks growth [logs|runs|outputs|files|nodes|trips]`.

Each row is one command at three sizes, each ten times the one before: processor time (the median of `ROUNDS`), the most
memory, and the last divided by the first. A factor tells more than seconds do: it is the same on any computer. The rows of
`trips` are round trips one after the other (tests/trips.py), counted, and beside that by how many the command's time grew.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.lab import GPUCOURSE, Lab, lab

ROUNDS = 3
RUNS = (30, 300, 3000)
OUTPUTS = (0, 1000, 10_000)
RUNS_WITH_OUTPUTS = 100
RTT_S = 0.2


@dataclass(frozen=True)
class Cost:
    """What one command took: seconds of processor time, and its largest memory in MB."""

    cpu_s: float
    memory_mb: float


class Row(Protocol):
    """One line of the table: what was measured, as text, and whether what was promised of it holds."""

    @property
    def keeps_promise(self) -> bool:
        """Whether the promise holds; a row without one only tells."""
        ...


@dataclass(frozen=True)
class Growth:
    """One command at growing sizes. `most` is the promise: how often the first time the last one may be."""

    command: str
    sizes: Sequence[str]
    costs: Sequence[Cost]
    most: float | None = None

    @property
    def factor(self) -> float:
        """The last time divided by the first."""
        return self.costs[-1].cpu_s / self.costs[0].cpu_s

    @property
    def memory_factor(self) -> float:
        """The last memory divided by the first."""
        return self.costs[-1].memory_mb / self.costs[0].memory_mb

    @property
    def keeps_promise(self) -> bool:
        """Whether the promise holds; a row without one only tells."""
        return self.most is None or self.factor <= self.most

    def __str__(self) -> str:
        costs = "  ".join(
            f"{size}: {cost.cpu_s:.2f} s {cost.memory_mb:.0f} MB" for size, cost in zip(self.sizes, self.costs, strict=True)
        )
        promise = "" if self.most is None else f"  promise {self.most:g}x: {'held' if self.keeps_promise else 'NOT held'}"
        return f"{self.command:28} {costs}  = {self.factor:.2f}x, memory {self.memory_factor:.2f}x{promise}"


@dataclass(frozen=True)
class Trips:
    """The round trips of one command: `counted`, and its time's growth divided by the round trip's. `most` is the promise."""

    command: str
    counted: int
    by_time: float
    connections: int
    most: int | None

    @property
    def keeps_promise(self) -> bool:
        """Whether the promise holds; a row without one only tells."""
        return self.most is None or self.counted <= self.most

    def __str__(self) -> str:
        promise = "" if self.most is None else f"  promise {self.most}: {'held' if self.keeps_promise else 'NOT held'}"
        by_time = f"by time {self.by_time:.1f}"
        return f"{self.command:28} {self.counted} round trips, {by_time}, {self.connections} connections per node{promise}"


def measure(words: Sequence[str], environ: dict[str, str], *, lines: int | None = None) -> Cost:
    """One command, its output thrown away; with `lines` it is read by a reader that ends after so many. Raises RuntimeError
    where it fails."""
    costs = [_measure_once(words, environ, lines) for _ in range(ROUNDS)]
    return Cost(statistics.median(cost.cpu_s for cost in costs), max(cost.memory_mb for cost in costs))


def _measure_once(words: Sequence[str], environ: dict[str, str], lines: int | None) -> Cost:
    with subprocess.Popen([GPUCOURSE, *words], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        if lines is None:
            while process.stdout.read(1 << 20):
                pass
        else:
            for _ in range(lines):
                process.stdout.readline()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 5}:  # 5: a check that did not pass, which is an answer
        raise RuntimeError(f"gpucourse {' '.join(words)} ended with code {process.returncode}")
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / scale)


def compare(
    command: str, environs: dict[str, dict[str, str]], *, most: float | None = None, lines: int | None = None
) -> Growth:
    """The command in each of these surroundings, by the name of the size."""
    costs = [measure(command.split(), environ, lines=lines) for environ in environs.values()]
    return Growth(f"{command} | head -{lines}" if lines else command, list(environs), costs, most)


def grow_runs(bench_lab: Lab, original: Path) -> Iterator[Growth]:
    """The commands that look at runs, in a workspace with 30, 300 and 3,000 of them."""
    environs = {}
    for count in RUNS:
        root = copy_workspace(bench_lab, f"runs-{count}")
        copy_runs(root, original, count)
        environs[f"{count} runs"] = {**bench_lab.environ, "GPUCOURSE_WORKSPACE": str(root)}
    yield from compare_commands(environs)


def grow_outputs(bench_lab: Lab, original: Path) -> Iterator[Growth]:
    """The same in a workspace of 100 runs that left none, 1,000 and 10,000 outputs each. The newest, which is judged, has the
    files; the others have them in their seals."""
    environs = {}
    for count in OUTPUTS:
        root = copy_workspace(bench_lab, f"outputs-{count}")
        leave_outputs(root / original.relative_to(bench_lab.root), count)
        copy_runs(root, original, RUNS_WITH_OUTPUTS)
        environs[f"{count} outputs"] = {**bench_lab.environ, "GPUCOURSE_WORKSPACE": str(root)}
    yield from compare_commands(environs)


def compare_commands(environs: dict[str, dict[str, str]]) -> Iterator[Growth]:
    """What a learner types all day, and completion; then what looks at all runs on purpose."""
    for command in ("status", "show 3.1", "check 3.1", "next"):
        yield compare(command, environs, most=1.3)
    completed = {
        name: {**environ, "_GPUCOURSE_COMPLETE": "complete_bash", "COMP_WORDS": "gpucourse logs ", "COMP_CWORD": "2"}
        for name, environ in environs.items()
    }
    costs = [measure([], environ) for environ in completed.values()]
    yield Growth("completion of a run", list(environs), costs, 1.3)
    for command in ("list", "grade", "check --all"):
        yield compare(command, environs, most=2.0)
    yield compare("runs", environs)


def count_trips(bench_lab: Lab, _original: Path) -> Iterator[Trips]:
    """Every command that asks nodes, on simulated nodes and on OpenSSH servers: without any delay, then with RTT_S."""
    from tests.trips import count_on_hosts, count_on_simulated_nodes

    for count in (count_on_simulated_nodes, count_on_hosts):
        folders = [bench_lab.root.with_name(f"{count.__name__}-{rtt_s}") for rtt_s in (0.0, RTT_S)]
        for folder in folders:
            folder.mkdir()
        near, far = (list(count(folder, rtt_s)) for folder, rtt_s in zip(folders, (0.0, RTT_S), strict=True))
        for quick, slow in zip(near, far, strict=True):
            by_time = (slow.seconds - quick.seconds) / RTT_S
            yield Trips(slow.command, slow.trips, by_time, slow.connections, slow.limit)


def copy_workspace(bench_lab: Lab, name: str) -> Path:
    """A copy of the workspace with its only run, in a folder beside it."""
    return shutil.copytree(bench_lab.root, bench_lab.root.with_name(name), symlinks=True)


def copy_runs(root: Path, original: Path, count: int) -> None:
    """Copy the only run of a workspace until there are so many, without the files that `leave_outputs` made."""
    source = root / "runs" / "3.1" / original.name
    text = source.joinpath("run.json").read_text(encoding="utf-8")
    for number in range(1, count):
        name = f"20260101-{number:06}-copy"
        folder = shutil.copytree(source, source.with_name(name), ignore=shutil.ignore_patterns("part-*"))
        folder.joinpath("run.json").write_text(text.replace(original.name, name), encoding="utf-8")


def leave_outputs(run: Path, count: int) -> None:
    """Make a run what it were had its script left so many more files of 1 KB: they are on record and sealed."""
    from gpucourse.model.record import MOST_LISTED, OutputFile, RunRecord
    from gpucourse.runs.finish import seal
    from gpucourse.workspace.files import read_record, write_record
    from gpucourse.workspace.paths import RunPaths

    files = RunPaths(run)
    record = read_record(files.record, RunRecord)
    assert record is not None
    folder = files.node_outputs("node0")
    for number in range(count):
        path = folder / f"part-{number:05}.bin"
        path.write_bytes(number.to_bytes(4, "big") * 250)
        if len(record.outputs) < MOST_LISTED:
            record.outputs.append(OutputFile(node="node0", path=f"outputs/node0/{path.name}", bytes=1000, sha256="0" * 64))
    record.output_files, record.output_bytes = record.output_files + count, record.output_bytes + 1000 * count
    write_record(files.record, record)
    seal(files, record.mode)


def measure_logs(bench_lab: Lab, original: Path) -> Iterator[Row]:
    """Commands that read logs (growth_logs.py)."""
    from benchmarks.growth_logs import grow_logs

    return grow_logs(bench_lab, original)


def measure_files(_bench_lab: Lab, _original: Path) -> Iterator[Row]:
    """Files that are collected, and on the disk of a node (growth_files.py), on nodes of their own."""
    from benchmarks.growth_files import grow_files

    return iter(grow_files())


def measure_nodes(_bench_lab: Lab, _original: Path) -> Iterator[Row]:
    """Commands on labs of 1, 8 and 64 nodes (growth_nodes.py), of their own."""
    from benchmarks.growth_nodes import grow_nodes

    return iter(grow_nodes())


KINDS: dict[str, Callable[[Lab, Path], Iterator[Row]]] = {
    "logs": measure_logs,
    "runs": grow_runs,
    "outputs": grow_outputs,
    "files": measure_files,
    "nodes": measure_nodes,
    "trips": count_trips,
}


def main(wanted: Sequence[str]) -> int:
    """Print a row for each command as soon as it is measured; 1 where a promise did not hold, 2 for an unknown kind."""
    if unknown := [name for name in wanted if name not in KINDS]:
        print(f"growth knows {', '.join(KINDS)}; not {', '.join(unknown)}", file=sys.stderr)
        return 2
    print(
        f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}; processor time, files by the clock\n"
    )
    held = True
    with lab() as bench_lab:
        bench_lab.type("deploy", "3")
        bench_lab.type("run", "3.1", "--nodes", "2", "--no-predict")
        bench_lab.type("destroy", "--all", "--yes")
        (original,) = bench_lab.root.glob("runs/3.1/*")
        for name in wanted or KINDS:
            for row in KINDS[name](bench_lab, original):
                print(row, flush=True)
                held = held and row.keeps_promise
    return int(not held)
