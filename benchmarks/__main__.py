"""One command, one table: `python -m benchmarks`, or `python -m benchmarks startup transfer` for some of the benchmarks.

Three are programs of their own: `python -m benchmarks gpu`, every exercise's GPU branch on one card (benchmarks/gpu.py),
`python -m benchmarks walk`, the whole course as Next says it (benchmarks/walk.py), and `python -m benchmarks emulator`,
CUDA programs in the emulator (benchmarks/emulator.py).
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
    """Measure what is named, each row printed as soon as it is measured, and print the table of all of them.

    Returns 0; 1 if a promise did not hold or a row could not be measured, 2 for an unknown name, 130 for Ctrl-C.
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
        print("interrupted; what was measured by then:", file=sys.stderr)
        code = 130
    machine = f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}"
    print(f"{machine}; medians; simulated nodes\n")
    print(table(rows))
    return code or int(not all(row.held for row in rows))


def measure(name: str) -> Iterator[Row]:
    """Yield the rows of one benchmark. It is imported only now: one that cannot be imported fails alone."""
    yield from importlib.import_module(f"benchmarks.{name}").measure()


if __name__ == "__main__":
    for name, function in (("gpu", "prove"), ("walk", "walk"), ("emulator", "prove")):
        if sys.argv[1:2] == [name]:
            sys.exit(getattr(importlib.import_module(f"benchmarks.{name}"), function)(sys.argv[2:]))
    sys.exit(main(sys.argv[1:], {name: partial(measure, name) for name in NAMES}))
