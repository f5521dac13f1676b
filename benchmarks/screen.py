"""What the live screen costs: two ranks that each print 100,000 lines a second for three seconds, on a terminal and in a pipe.

`python -m benchmarks.screen`. The reader behind the terminal or the pipe is another process, as it is in life. `late` is the
longest that a rank's bytes waited to be taken: a screen that holds up its readers would hold up the exercise.
"""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

from gpucourse.model.event import LogBytes, Stage
from gpucourse.ui.live import Live
from gpucourse.ui.out import Out

DIRTY = "\x1b[32mepoch 3\x1b[0m étape 12345 loss 2.3456 samples/s 123456.7\r\n".encode()
LINE = b"epoch 3 step 12345 loss 2.3456 lr 0.0003 samples/s 123456.7 mem 12345 MiB grad_norm 1.2345678\n"
RATE = 100_000
PIECES_A_SECOND = 50
SECONDS = 3.0

Streams = Callable[[], tuple[int, int]]
Rank = Callable[[int, Live], None]


class Measurement(NamedTuple):
    """One case: lines fed, wall and CPU seconds, growth of the memory, the longest wait of a feeder."""

    where: str
    lines: int
    wall_s: float
    cpu_s: float
    grown_mib: float
    late_ms: float


def main() -> int:
    """Measure, print the table, answer 1 where a rank was held up or the memory grew without bound."""
    measured = [_measure_paced("terminal", pty.openpty), _measure_paced("pipe", _pipe), _flat_out("pipe, flat out", LINE)]
    measured.append(_flat_out("pipe, flat out, escapes", DIRTY))
    print(f"{'where':26}{'lines':>12}{'lines/s':>12}{'CPU s':>8}{'memory MiB':>12}{'late ms':>9}")
    for measurement in measured:
        rate = measurement.lines / measurement.wall_s
        print(
            f"{measurement.where:26}{measurement.lines:>12,}{rate:>12,.0f}{measurement.cpu_s:>8.2f}{measurement.grown_mib:>+12.1f}{measurement.late_ms:>9.0f}"
        )
    held = all(measurement.grown_mib < 32 and measurement.late_ms < 500 for measurement in measured)
    held = held and all(measurement.lines / measurement.wall_s > 2 * RATE for measurement in measured[2:])
    print("held" if held else "NOT HELD", "(memory below 32 MiB, no rank held up half a second, 200,000 lines/s and more)")
    return 0 if held else 1


def _measure_paced(where: str, streams: Streams) -> Measurement:
    piece = LINE * (RATE // PIECES_A_SECOND)
    late: list[float] = []

    def rank(number: int, live: Live) -> None:
        began = time.monotonic()
        for turn in range(int(SECONDS * PIECES_A_SECOND)):
            time.sleep(max(0.0, began + turn / PIECES_A_SECOND - time.monotonic()))
            before = time.monotonic()
            live(LogBytes(node=f"node{number}", rank=number, data=piece))
            late.append(time.monotonic() - before)

    lines = 2 * int(SECONDS * PIECES_A_SECOND) * (RATE // PIECES_A_SECOND)
    return _measure(where, streams, rank, lines, late)


def _flat_out(where: str, text: bytes) -> Measurement:
    count, turns = (256 << 10) // len(text), 200  # in pieces as an SSH channel gives them
    piece = text * count
    late: list[float] = []

    def rank(number: int, live: Live) -> None:
        for _ in range(turns):
            before = time.monotonic()
            live(LogBytes(node=f"node{number}", rank=number, data=piece))
            late.append(time.monotonic() - before)

    return _measure(where, _pipe, rank, 2 * turns * count, late)


def _measure(where: str, streams: Streams, rank: Rank, lines: int, late: list[float]) -> Measurement:
    with _reader(streams) as stream:
        out = Out(stream)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        with Live(out, colour=out.terminal, moving=out.terminal) as live:
            live(Stage(name="run", text="running on node0, node1"))
            threads = [threading.Thread(target=rank, args=(number, live)) for number in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return Measurement(where, lines, wall, cpu, (after.ru_maxrss - before.ru_maxrss) / unit, 1000 * max(late, default=0.0))


@contextmanager
def _reader(streams: Streams) -> Iterator[TextIO]:
    read, write = streams()
    with subprocess.Popen(["cat"], stdin=read, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as reader:
        os.close(read)
        with os.fdopen(write, "w", encoding="utf-8") as stream:
            yield stream
        reader.wait(timeout=30)


def _pipe() -> tuple[int, int]:
    return os.pipe()


if __name__ == "__main__":
    sys.exit(main())
