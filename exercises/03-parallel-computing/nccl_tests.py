"""NVIDIA's own benchmark, for comparison: find `all_reduce_perf` (github.com/NVIDIA/nccl-tests), run it, read its table."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLACES = (  # where deep learning images, and people who build it themselves, put it
    "/usr/local/cuda*/efa/test-cuda*/all_reduce_perf",
    "/opt/nccl-tests/build/all_reduce_perf",
    "/usr/local/bin/all_reduce_perf",
)


@dataclass(frozen=True)
class Row:
    """One size in the benchmark's table, with bandwidths in GB/s. `wrong` is None if the benchmark did not check the values."""

    size: int
    count: int
    dtype: str
    time_us: float
    algbw: float
    busbw: float
    wrong: int | None


def compare(
    own_speeds: Mapping[int, float], *, high: int, factor: int, gpus: int, hosts: int
) -> tuple[list[dict[str, float | int | None]], str | None]:
    """Return one row per size: the benchmark's bus bandwidth next to `own_speeds` (GB/s by size in bytes). Also return the
    reason if there are no rows, or None.

    `gpus` is how many ranks have a GPU. Over several hosts, the program would need MPI, which may not be installed.
    """
    program = find()
    if program is None:
        return [], "all_reduce_perf is not on this node"
    if not own_speeds or gpus < 2 or hosts > 1:
        return [], f"{program} was not run: " + (
            "AllReduce was not measured"
            if not own_speeds
            else "it needs two GPUs"
            if gpus < 2
            else "over several nodes it needs MPI"
        )
    try:
        program_rows = measure(program, low=min(own_speeds), high=high, factor=factor, gpus=gpus)
    except (RuntimeError, ValueError) as error:
        return [], str(error)
    rows = [
        {"bytes": row.size, "ours_gb_per_s": own_speeds[row.size], "theirs_gb_per_s": row.busbw, "their_wrong": row.wrong,
         "ours_percent": 100 * own_speeds[row.size] / row.busbw if row.busbw else None}
        for row in program_rows if row.size in own_speeds
    ]  # fmt: skip
    return rows, None if rows else f"{program} measured other sizes"


def find() -> str | None:
    """Return the path of the program on this node, or None."""
    candidates = [str(path) for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
    return shutil.which("all_reduce_perf") or next(iter(candidates), None)


def measure(program: str, *, low: int, high: int, factor: int, gpus: int, timeout_s: float = 600) -> list[Row]:
    """Time AllReduce over the GPUs of this node, from `low` to `high` bytes, and return the rows.

    Raises RuntimeError with the end of the program's output.
    """
    command = [program, "-b", str(low), "-e", str(high), "-f", str(factor), "-g", str(gpus), "-n", "20", "-w", "5"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f"{program}: {error}") from error
    rows = parse(process.stdout)
    if process.returncode or not rows:
        last_line = (process.stderr.strip() or process.stdout.strip() or "nothing").splitlines()[-1]
        raise RuntimeError(f"{program} ended with {process.returncode} and {len(rows)} rows; its last line: {last_line}")
    return rows


def parse(text: str) -> list[Row]:
    """Return the in-place half of the text table, because `dist.all_reduce` also works in place.

    A row is: size count type redop root, then time algbw busbw #wrong out of place, then the same four in place. Comments (#),
    and lines from MPI or NCCL's log, are skipped.
    """
    rows = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 13 or not (words[0].isdigit() and words[1].isdigit()):
            continue
        time_us, alg, bus, wrong_text = words[9:13]
        error_count = None if wrong_text == "N/A" else int(float(wrong_text))
        rows.append(Row(int(words[0]), int(words[1]), words[2], float(time_us), float(alg), float(bus), error_count))
    return rows
