"""How `logs` grows: commands on logs of 1, 10 and 100 MB a rank, kinds of logs that are hard to read, and 1 GB beside `cat`.

Speed is that of both logs together by processor time, without the program's start, which the same command takes for two empty
logs. What other programs do changes it less than time by the clock, but a busy machine is slower by up to a half all the same.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from benchmarks.growth import Growth, Row, compare, copy_workspace, measure
from benchmarks.lab import GPUCOURSE, Lab
from benchmarks.measure import seconds

LINE = b"[rank %d] step %07d: loss %.6f, %.1f samples/s on this rank alone\nepoch %d: every rank writes this line as it is\n"
MEGABYTES = (1, 10, 100)
MB = 10**6
HARD = 4 * MB  # of each rank, and of each kind
SLOWEST, MOST_MEMORY = 20, 100  # what is promised: MB/s and MB
ROUNDS = 5
A_GIGABYTE = 1000 * MB
LINES = HARD // 10


@dataclass(frozen=True)
class Rate:
    """One command on logs of one kind."""

    command: str
    kind: str
    mb_per_s: float
    memory_mb: float

    @property
    def keeps_promise(self) -> bool:
        """Whether it is as quick, and needs as little memory, as is promised of any log."""
        return self.mb_per_s >= SLOWEST and self.memory_mb <= MOST_MEMORY

    def __str__(self) -> str:
        promise = f"promise {SLOWEST} MB/s in {MOST_MEMORY} MB: {'held' if self.keeps_promise else 'NOT held'}"
        return f"{self.command:14} {self.kind:46} {self.mb_per_s:6.1f} MB/s, {self.memory_mb:.0f} MB  {promise}"


@dataclass(frozen=True)
class Beside:
    """One command beside another program, by the clock, in turns. `most`: how many times as long it may take."""

    command: str
    ours_s: Sequence[float]
    other: str
    other_s: Sequence[float]
    most: float

    @property
    def factor(self) -> float:
        """How many times as long ours takes, by the medians."""
        return statistics.median(self.ours_s) / statistics.median(self.other_s)

    @property
    def keeps_promise(self) -> bool:
        """Whether it takes no longer than is promised."""
        return self.factor <= self.most

    def __str__(self) -> str:
        ours, other = (f"{statistics.median(times):.2f} s ({min(times):.2f})" for times in (self.ours_s, self.other_s))
        held = "held" if self.keeps_promise else "NOT held"
        return f"{self.command:28} {ours}, {self.other} {other}  = {self.factor:.2f}x  promise {self.most:g}x: {held}"


def grow_logs(bench_lab: Lab, original: Path) -> Iterator[Row]:
    """All rows: sizes first, then kinds, then a gigabyte."""
    yield from grow_sizes(bench_lab, original)
    yield from measure_kinds(bench_lab, original)
    yield compare_with_cat(bench_lab, original)


def grow_sizes(bench_lab: Lab, original: Path) -> Iterator[Growth]:
    """`logs` of a run whose two ranks wrote so many megabytes each."""
    environs = {}
    for megabytes in MEGABYTES:
        root = copy_workspace(bench_lab, f"logs-{megabytes}")
        run = root / original.relative_to(bench_lab.root)
        for rank in range(2):
            write_log(run / "logs", rank, megabytes * MB)
        environs[f"{megabytes} MB"] = {**bench_lab.environ, "GPUCOURSE_WORKSPACE": str(root)}
    yield compare("logs", environs, lines=3, most=1.3)
    yield compare("logs --tail 5", environs, most=1.3)
    yield compare("logs --since 2s", environs, most=1.3)
    for command in ("logs", "logs --rank 0", "logs --grep 00077", "logs --times", "logs --fold"):
        yield compare(command, environs)


def measure_kinds(bench_lab: Lab, original: Path) -> Iterator[Rate]:
    """`--fold` and `--times` of logs that are hard to read, two ranks of about `HARD` bytes each."""
    root = copy_workspace(bench_lab, "logs-hard")
    folder = root / original.relative_to(bench_lab.root) / "logs"
    environ = {**bench_lab.environ, "GPUCOURSE_WORKSPACE": str(root)}
    for command, kinds in (("logs --fold", FOLDED), ("logs --times", TIMED)):
        write_hard_logs(folder, Kind(lambda _rank, _choices: ()))
        start = measure(command.split(), environ)
        for name, kind in kinds.items():
            size = write_hard_logs(folder, kind)
            cost = measure(command.split(), environ)
            yield Rate(command, name, size / MB / (cost.cpu_s - start.cpu_s), cost.memory_mb)


@dataclass(frozen=True)
class Kind:
    """A kind of log: pieces of what a rank writes, by that rank and random choices; then how many bytes each note of a time is
    about, and how many milliseconds are between two."""

    make: Callable[[int, random.Random], Iterable[bytes]]
    bytes_a_note: int = 65536
    ms_a_note: float = 1


def number_lines(rank: int, _choices: random.Random) -> Iterator[bytes]:
    """Lines of 10 bytes that no other rank has."""
    return (b"%09d\n" % (2 * number + rank) for number in range(LINES))


def mix_lines(within: int) -> Callable[[int, random.Random], Iterator[bytes]]:
    """Lines of 10 bytes that all ranks write, each in an order of its own."""

    def make(_rank: int, choices: random.Random) -> Iterator[bytes]:
        for at in range(0, LINES, within):
            yield from (b"%09d\n" % number for number in choices.sample(range(at, at + within), within))

    return make


def choose_words(_rank: int, choices: random.Random) -> Iterator[bytes]:
    """Lines of 100 bytes with other letters on every rank."""
    return (bytes(choices.choices(b"abcdefghij ", k=99)) + b"\n" for _ in range(HARD // 100))


COMMON = {
    "empty lines": Kind(lambda _rank, _choices: repeat(b"\n", HARD)),
    "NUL bytes": Kind(lambda _rank, _choices: repeat(b"\0" * 99 + b"\n", HARD // 100)),
    "colours": Kind(lambda _rank, _choices: repeat(b"\x1b[32mstep\x1b[0m 17 of 1000\n", HARD // 26)),
    "random bytes": Kind(lambda _rank, choices: (choices.randbytes(100) for _ in range(HARD // 100))),
    "random bytes but carriage returns": Kind(
        lambda _rank, choices: (choices.randbytes(100).translate(None, b"\r") for _ in range(HARD // 100))
    ),
    "one line without an end": Kind(lambda _rank, _choices: repeat(b"x" * 1000, 25 * HARD // 1000)),
}
FOLDED = {
    **COMMON,
    "lines of 10 bytes that differ in numbers": Kind(number_lines),
    "other words on each rank": Kind(choose_words),
    "lines of 10 bytes mixed up within 10": Kind(mix_lines(10)),
    "lines of 10 bytes mixed up within 100": Kind(mix_lines(100)),
}
TIMED = {
    **COMMON,
    "a note for each 100 bytes": Kind(number_lines, 100, 0.1),
    "a note for each 10 bytes, ten a millisecond": Kind(number_lines, 10, 0.1),
    "a note for each 10 bytes and millisecond": Kind(number_lines, 10, 1),
}


def write_hard_logs(folder: Path, kind: Kind) -> int:
    """The logs of two ranks, with their times. How many bytes both have."""
    size = 0
    for rank in range(2):
        (log,) = folder.glob(f"*-rank{rank}.log")
        with log.open("wb") as file:
            file.writelines(kind.make(rank, random.Random(rank)))
            written = file.tell()
        began = 1_900_000_000 + rank * 0.0005
        places = range(kind.bytes_a_note, written + kind.bytes_a_note, kind.bytes_a_note)
        with log.with_suffix(".times").open("w", encoding="utf-8") as notes:
            notes.writelines(f"{place} {began + number * kind.ms_a_note / 1000:.3f}\n" for number, place in enumerate(places))
        size += written
    return size


def compare_with_cat(bench_lab: Lab, original: Path) -> Beside:
    """A log of 1 GB through a pipe to a program that reads and forgets it."""
    root = copy_workspace(bench_lab, "logs-gigabyte")
    folder = root / original.relative_to(bench_lab.root) / "logs"
    write_log(folder, 0, A_GIGABYTE)
    (log,) = folder.glob("*-rank0.log")
    environ = {**bench_lab.environ, "GPUCOURSE_WORKSPACE": str(root)}
    ours, other = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(lambda: _read_all([GPUCOURSE, "logs", "--rank", "0"], environ)))
        other.append(seconds(lambda: _read_all(["cat", str(log)], environ)))
    return Beside("logs --rank 0 of 1 GB", ours, "cat", other, 1.3)


def _read_all(words: Sequence[str], environ: dict[str, str]) -> None:
    with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        while os.read(process.stdout.fileno(), MB):
            pass
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} ended with code {process.returncode}")


def write_log(folder: Path, rank: int, size: int) -> None:
    """A log of a rank of about that size, with its times: a piece each 64 KiB, a thousandth of a second apart."""
    (log,) = folder.glob(f"*-rank{rank}.log")
    times = log.with_suffix(".times")
    began = float(times.read_text(encoding="utf-8").split()[1])
    step, written, notes = 0, 0, []
    with log.open("wb") as file:
        while written < size:
            block = b"".join(
                LINE % (rank, number, number % 997 / 7, number % 313 / 3, number) for number in range(step, step + 500)
            )
            written += file.write(block)
            step += 500
            notes.append(f"{written} {began + step / 500_000:.3f}\n")
        file.write(b"the end\n")
    notes.append(f"{written + 8} {began + 100:.3f}\n")
    times.write_text("".join(notes), encoding="utf-8")
