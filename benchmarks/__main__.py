"""One command, one table: `python -m benchmarks`, or `python -m benchmarks startup transfer` for some of it."""

from __future__ import annotations

import importlib
import platform
import sys

from benchmarks.measure import Row, table

NAMES = ("startup", "deploying", "running", "slurm", "cluster", "failing", "transfer", "fanout", "streaming", "cloud")


def main(wanted: list[str]) -> int:
    """Measure what was asked for, print the table, and answer 1 if a promise did not hold."""
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"there is no benchmark {', '.join(unknown)}; known: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in wanted or NAMES:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.{name}").measure()
    machine = f"{platform.platform()}, {platform.machine()}, Python {platform.python_version()}"
    print(f"{machine}; medians; simulated nodes, and a mock account for the cloud\n")
    print(table(rows))
    return 0 if all(row.held for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
