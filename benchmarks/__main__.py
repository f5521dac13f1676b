"""Run the benchmarks and print one table: `python -m benchmarks`, or `python -m benchmarks startup transfer` for some of them.

Three benchmarks are separate programs. `python -m benchmarks gpu` runs the GPU branch of every exercise on one GPU
(benchmarks/gpu.py). `python -m benchmarks walk` walks through the whole course, following Next (benchmarks/walk.py).
`python -m benchmarks emulator` runs CUDA programs in the emulator (benchmarks/emulator.py).
"""

from __future__ import annotations

import importlib
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from benchmarks.measure import Row, attempt, table

NAMES = ("startup", "running", "trips", "transfer", "logs", "nodes", "streaming")


def main(names: list[str], known: Mapping[str, Callable[[], Iterable[Row]]]) -> int:
    """Run the named benchmarks, print each row as soon as it is measured, and finally print the table of all rows.

    Return 0 if every promise held, 1 if a promise did not hold or a row could not be measured, 2 for an unknown name, 130 for
    Ctrl-C.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}; known: {', '.join(known)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    code = 0
    try:
        for name in names or known:
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            for row in attempt(name, known[name]):
                print("  " + "  ".join(filter(None, row.cells)), file=sys.stderr, flush=True)
                rows.append(row)
    except KeyboardInterrupt:
        print("interrupted; the rows measured so far:", file=sys.stderr)
        code = 130
    machine = f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}"
    print(f"{machine}; medians; simulated nodes\n")
    print(table(rows))
    return code or int(not all(row.held for row in rows))


def measure(name: str) -> Iterator[Row]:
    """Yield the rows of one benchmark. It is imported only now, so that a failing import stops only this one."""
    yield from importlib.import_module(f"benchmarks.{name}").measure()


if __name__ == "__main__":
    for name, function in (("gpu", "prove"), ("walk", "walk"), ("emulator", "prove")):
        if sys.argv[1:2] == [name]:
            sys.exit(getattr(importlib.import_module(f"benchmarks.{name}"), function)(sys.argv[2:]))
    sys.exit(main(sys.argv[1:], {name: partial(measure, name) for name in NAMES}))
