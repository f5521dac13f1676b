"""Describe the versions of a product in rows: memory requests, speed, and published speeds. Write versions.md.

FLOP are counted as 2 n³: n multiplications and n additions for each of n² numbers.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

FLOAT32 = ("naive", "coalesced", "tiled", "registers")
VERSIONS = (*FLOAT32, "tensor")
YOURS = ("tiled", "registers")
FAULTS = ("races", "unwritten_reads", "out_of_bounds", "barrier_divergence")
TOLERANCE = 1.05  # times the library's own speed: two measurements of the same thing may differ by that much
NOT_MEASURED = "not measured"

# GFLOP/s in float32 at n = 4096 (the first README says 4092), under our names: their "2D block tiling" is `registers`.
PUBLISHED: tuple[dict[str, Any], ...] = (
    {
        "key": "a6000", "gpu": "RTX A6000",
        "source": "github.com/siboehm/SGEMM_CUDA (README; siboehm.com/articles/22/CUDA-MMM explains each)",
        "naive": 309.0, "coalesced": 1986.5, "tiled": 2980.3, "registers": 15971.7, "library": 23249.6,
        "beyond": {"four numbers a load": 18237.3, "tuned sizes": 19721.0, "tiles by warp": 21779.3},
    },
    {
        "key": "v100", "gpu": "V100 32 GB", "source": "github.com/jhlee508/matmul-cuda (README; CUDA 12.4)",
        "naive": 245.7, "coalesced": 2311.7, "tiled": 4263.2, "registers": 12053.7, "library": 14205.7,
        "beyond": {"four numbers a load": 13583.9},
    },
)  # fmt: skip


def read_lines(output: str, names: Sequence[str] = VERSIONS) -> tuple[dict[str, dict[str, Any]], str | None]:
    """Return the harness's output: a row for each version in `names`, and why it ended early (None if it did not)."""
    rows, failure = {}, None
    for line in output.splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # what a kernel prints itself
            continue
        if isinstance(row, dict) and "failed" in row:
            failure = str(row["failed"])
        elif isinstance(row, dict) and row.get("version") in names:
            rows[row["version"]] = row
    return rows, failure


def flop_per_byte(n: int, load_bytes: int) -> float | None:
    """Return the arithmetic intensity: FLOP per byte that the threads request from main memory, or None without requests."""
    return 2 * n**3 / load_bytes if load_bytes else None


def count_version(version: str, n: int, row: Mapping[str, Any] | None, kernel: Any) -> dict[str, Any]:
    """Return one row of the table: the product's error, and the memory requests that the emulator counted for `kernel`.

    A version that accesses no memory is not written yet, so its numbers are None. The requests of `tensor` are None, too:
    NVIDIA does not document which lane of a warp holds which number of a fragment.
    """
    if row is None or kernel is None:
        return _fill(version, n, "did not end")
    if not kernel.global_load.bytes and not kernel.global_store.bytes:
        return _fill(version, n, "not written yet")
    is_right = row["error"] <= row["allowed"] and not row["unwritten"]
    fault = kernel.first_fault()
    return {
        **_fill(version, n, "wrong" if not is_right else "right, with a fault" if fault else "right"),
        "error_of_allowed": _find_share(row), "fault": fault,
        "load_bytes": kernel.global_load.bytes, "load_mb": kernel.global_load.bytes / 1e6,
        "flop_per_byte": flop_per_byte(n, kernel.global_load.bytes),
        "load_sectors_per_request": kernel.global_load.sectors_per_request,
        "shared_load_conflicts": kernel.shared_load.bank_conflicts,
        "shared_store_conflicts": kernel.shared_store.bank_conflicts,
        **{key: getattr(kernel, key) for key in FAULTS},
    }  # fmt: skip


def _find_share(row: Mapping[str, Any]) -> float:
    """Return the error of a product as a share of the allowed error.

    Return infinity if numbers were not written, or if no error is allowed.
    """
    if row["unwritten"] or not row["allowed"]:
        return math.inf
    return row["error"] / row["allowed"]


def _fill(version: str, n: int, state: str) -> dict[str, Any]:
    keys = (
        "error_of_allowed", "load_bytes", "load_mb", "flop_per_byte", "load_sectors_per_request", "shared_load_conflicts",
        "shared_store_conflicts", *FAULTS, "fault",
    )  # fmt: skip
    return {"version": version, "n": n, "state": state, **dict.fromkeys(keys)}


def summarize_version(rows: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    """Return a version's row over all sizes: its worst error, its faults, and its memory requests at the largest n.

    All are None if the version is not written.
    """
    version_rows = [row for row in rows if row["version"] == version]
    last = max(version_rows, key=lambda row: row["n"])
    fault = next((row["fault"] for row in version_rows if row["fault"]), None)
    return {
        **last, "error_of_allowed": find_worst(version_rows), "fault": fault,
        **{key: _add(version_rows, key) for key in (*FAULTS, "shared_load_conflicts")},
    }  # fmt: skip


def find_worst(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the largest error of these rows, as a share of the allowed error, or None if an error is missing."""
    errors = [row["error_of_allowed"] for row in rows]
    return None if None in errors else max(errors)


def count_faults(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the races, reads of unwritten memory, and accesses out of bounds of these rows, or None if one was not counted."""
    counts = [_add(rows, key) for key in FAULTS]
    return None if None in counts else sum(counts)


def _add(rows: Sequence[Mapping[str, Any]], key: str) -> int | None:
    values = [row[key] for row in rows]
    return None if None in values else sum(values)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """Return the first number divided by the second, or None if one of them is missing or 0."""
    return numerator / denominator if numerator and denominator else None


def time_version(
    row: Mapping[str, Any], median_ms: float | None, library_gflop_per_s: float | None, peak_tflops: float | None
) -> dict[str, Any]:
    """Return the speed of a version on a GPU, next to those of the library in the same format and of the data sheet.

    A speed above the data sheet's, or more than 5 % above the library's, is refused: it is None, and `refused` is true.
    """
    speed = 2 * row["n"] ** 3 / median_ms / 1e6 if median_ms else None
    limits = (peak_tflops and 1e3 * peak_tflops, library_gflop_per_s and TOLERANCE * library_gflop_per_s)
    gflops = limit_speed(speed, limits)
    return {
        "version": row["version"], "n": row["n"], "median_ms": median_ms, "gflop_per_s": gflops, "library": library_gflop_per_s,
        "percent_of_library": 100 * gflops / library_gflop_per_s if gflops and library_gflop_per_s else None,
        "percent_of_peak": gflops / peak_tflops / 10 if gflops and peak_tflops else None,
        "error_of_allowed": _find_share(row), "refused": speed != gflops,
    }  # fmt: skip


def limit_speed(speed: float | None, limits: Sequence[float | None]) -> float | None:
    """Return the speed, or None if it is above a known limit and so cannot be right."""
    return None if speed is None or any(limit is not None and speed > limit for limit in limits) else speed


def describe_library(n: int, label: str, speed: float, peak_tflops: float | None) -> dict[str, Any]:
    """Return the row of the library's own product in one format. A speed above the data sheet's is refused."""
    shown_speed = limit_speed(speed, (peak_tflops and 1e3 * peak_tflops,))
    return {"what": label, "n": n, "gflop_per_s": shown_speed, "refused": shown_speed is None}


def count_steps_down(timed: Sequence[Mapping[str, Any]]) -> int | None:
    """Return how many float32 versions are no faster at the largest size than the previous one, or None if one has no time."""
    largest = max((row["n"] for row in timed), default=None)
    speed = {row["version"]: row["gflop_per_s"] for row in timed if row["n"] == largest}
    if any(speed.get(version) is None for version in FLOAT32):
        return None
    return sum(speed[faster] <= speed[slower] for slower, faster in itertools.pairwise(FLOAT32))


def set_beside(timed: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each version in float32: its speed in % of the library's at the largest size, and published speeds.

    The percentage is None if the version was not timed; `why_not` says why. The published speeds were measured on other cards.
    """
    largest = max((row["n"] for row in timed), default=None)
    percentages = {row["version"]: row["percent_of_library"] for row in timed if row["n"] == largest}
    why_not = "not written, or too fast to be right" if timed else "not measured: no GPU with nvcc"
    return [
        {
            "version": version, "yours": percentages.get(version), "why_not": why_not,
            **{card["key"]: 100 * card[version] / card["library"] for card in PUBLISHED},
            **{f"{card['key']}_gflop_per_s": card[version] for card in PUBLISHED},
        }
        for version in FLOAT32
    ]  # fmt: skip


def write_page(device: str, counted_rows: Sequence[Mapping[str, Any]], timed: Sequence[Mapping[str, Any]]) -> str:
    """Return the versions as a page in Markdown: your versions, and those that others published, each with its source."""
    lines = ["# GEMM in five versions", "", "## Counted by the emulator", ""]
    lines += _table(
        ("version", "n", "state", "MB asked for", "FLOP per byte", "sectors per request"),
        [(row["version"], row["n"], row["state"], _show(row["load_mb"], 3), _show(row["flop_per_byte"], 2),
          _show(row["load_sectors_per_request"], 2)) for row in counted_rows],
    )  # fmt: skip
    lines += ["", f"## Timed on {device}", ""]
    if timed:
        lines += _table(
            ("version", "n", "median ms", "GFLOP/s", "% of the library"),
            [(row["version"], row["n"], _show(row["median_ms"], 3), _show(row["gflop_per_s"], 0),
              _show(row["percent_of_library"], 1)) for row in timed],
        )  # fmt: skip
    else:
        lines += [f"{NOT_MEASURED.capitalize()}: that needs a GPU and nvcc. The emulator counts accesses, but no times."]
    lines += ["", "## Published: float32, n = 4096, on other cards in other computers", ""]
    lines += _table(
        ("version", *(f"{card['gpu']}, GFLOP/s (% of the library)" for card in PUBLISHED)),
        [(version, *(f"{card[version]:,.1f} ({100 * card[version] / card['library']:.1f})" for card in PUBLISHED))
         for version in (*FLOAT32, "library")],
    )  # fmt: skip
    lines += ["", *(f"{card['gpu']}: {card['source']}" + _name_beyond(card) for card in PUBLISHED)]
    lines += ["", "You can compare percentages of the library's speed between cards, but not GFLOP/s.", ""]
    return "\n".join(lines)


def _name_beyond(card: Mapping[str, Any]) -> str:
    return "; beyond these versions: " + ", ".join(
        f"{name} {100 * speed / card['library']:.1f} %" for name, speed in card["beyond"].items()
    )


def _table(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    return [f"| {' | '.join(map(str, cells))} |" for cells in (titles, ["---"] * len(titles), *rows)]


def _show(value: float | None, digits: int) -> str:
    return NOT_MEASURED if value is None else f"{value:,.{digits}f}"
