"""Find faults in the kernels of 5.0 and 5.1 with the emulator, at several sizes and in several orders of the threads.

The script and the judges share these messages and figures. Needs the emulator, but no torch.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import emulator
from emulator.cuda_source import blank_out

HARNESS = Path(__file__).resolve().parent / "harness.cu"
FILES = ("given.cu", "my_kernels.cu", "my_warps.cu")
GIVEN_KERNELS = ("copy", "vector_copy", "shifted_copy", "strided_copy", "read_field", "column_of_32", "column_of_34")
LEARNERS = {"my_kernels.cu": ("vector_add", "block_sum"), "my_warps.cu": ("transpose", "clip_sum")}
FIRST_FILE = "my_first_kernels.cu"  # of 5.0
FIRST_KERNELS = (
    "map", "guard", "two_dimensions", "broadcast", "halo", "pooling", "axis_sum", "scan", "histogram", "embedding",
    "transpose", "dot",
)  # fmt: skip
PARTS = (*FILES, FIRST_FILE)  # the index of a file is its PART in the harness
SIZES = (1, 31, 257, 1000)  # elements; 257 is one more than the threads of a block of 256
ORDERS = (1, 2, 3)  # of the threads, in addition to the plain one
COUNTED = 4096  # elements when requests are counted: whole blocks of every size, and whole tiles
FIRST_COUNTED_SIZE = 992  # the same for 5.0, whose map has a single block, of at most 1,024 threads
# This matches everything before the name of a kernel; __launch_bounds__(256) may be before or behind void.
_KERNEL = r"__global__(?:[^;{}()]|\([^()]*\))*?\bvoid\b(?:[^;{}()]|\([^()]*\))*?\b"
LIMIT_S = 8.0  # of one run, which takes a few hundredths of a second


@dataclass(frozen=True)
class Setting:
    """The launch settings of a kernel: threads per block, and the stride of strided_copy."""

    block: int = 256
    stride: int = 2


def build(file: Path, folder: Path) -> emulator.Program:
    """Return the harness with the kernels of `file`, for the emulator. Raises emulator.CompileError, emulator.Unsupported."""
    return emulator.build([HARNESS, file], folder=folder, defines={"PART": PARTS.index(file.name)}, every=True)


def find_body(text: str, kernel: str) -> str | None:
    """Return the code between the braces of a kernel, without comments and strings, or None if the kernel does not exist."""
    code = blank_out(text)
    begin = re.search(rf"{_KERNEL}{kernel}\s*\([^;{{]*\{{", code)
    if begin is None:
        return None
    depth, place = 1, begin.end()
    while depth and place < len(code):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        place += 1
    return code[begin.end() : place - 1]


def list_kernels(text: str) -> list[str]:
    """Return the names of the kernels that a text defines."""
    return re.findall(rf"{_KERNEL}((?!__)\w+)\s*\([^;{{]*\{{", blank_out(text))


def is_open(body: str) -> bool:
    """Return whether a kernel's body still has the line that says it is not written."""
    return re.search(r"\bOPEN\s*\(", body) is not None


def count_bytes(kernel: str, elements: int) -> int | None:
    """Return the bytes that a kernel must move through the GPU's memory if it moves each array once.

    Return None for a kernel that stays in shared memory. A number has 4 bytes. For each element, vector_add reads two numbers
    and writes one; block_sum reads one; clip_sum reads one of each channel; each of the others reads one and writes one.
    """
    numbers = {"vector_add": 3, "block_sum": 1, "clip_sum": 2, "column_of_32": None, "column_of_34": None}.get(kernel, 2)
    return None if numbers is None else 4 * numbers * elements


def examine(
    program: emulator.Program, kernel: str, setting: Setting, sizes: Sequence[int] = SIZES, counted: int = COUNTED
) -> dict[str, Any]:
    """Return all findings about a kernel: wrong results at each size and in other orders, faults, and its warps' memory
    requests at `counted` elements.

    Raises emulator.Endless, emulator.TooMuchOutput.
    """
    plain_sizes = [size for size in sizes if size != counted]
    plain = _start(program, kernel, setting, plain_sizes)
    reordered = [_start(program, kernel, setting, SIZES[-1:], order) for order in ORDERS]
    counted_run = _start(program, kernel, setting, (counted,))
    wrong_rows = [row for row in [*plain.rows, *counted_run.rows] if row["wrong"]]
    faults = [run.kernel for run in (plain, *reordered, counted_run) if run.kernel is not None]
    return {
        "kernel": kernel,
        "sizes": [*plain_sizes, counted],
        "wrong_sizes": len(wrong_rows),
        "wrong": _describe(wrong_rows[0]) if wrong_rows else "",
        "wrong_rows": [[row["size"], row["wrong"], row["first_wrong"], row["given"]] for row in wrong_rows],
        "max_error": max((row["error"] for row in [*plain.rows, *counted_run.rows]), default=None),
        "orders_wrong": sum(any(row["wrong"] for row in run.rows) or bool(run.ended) for run in reordered),
        "ended": next((run.ended for run in (plain, *reordered, counted_run) if run.ended), ""),
        "out_of_bounds": sum(item.out_of_bounds + item.used_after_free for item in faults),
        "where": _first(item.where or item.freed for item in faults),
        "races": sum(item.races for item in faults),
        "race": _first(item.race for item in faults),
        "unwritten_reads": sum(item.unwritten_reads for item in faults),
        "unwritten": _first(item.unwritten for item in faults),
        "barrier_divergence": sum(item.barrier_divergence for item in faults),
        "diverged": _first(item.diverged for item in faults),
        **_count(counted_run.kernel, kernel, counted, counted_run.rows[0]["blocks"] if counted_run.rows else 1),
    }


@dataclass(frozen=True)
class _Run:
    rows: list[dict[str, Any]]
    ended: str
    kernel: emulator.Kernel | None


def _start(program: emulator.Program, kernel: str, setting: Setting, sizes: Sequence[int], order: int = 0) -> _Run:
    words = [kernel, str(setting.block), str(setting.stride), *map(str, sizes)]
    result = program.run(*words, order=order, limit_s=LIMIT_S, every=True)
    rows = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    error_text = next((row["cuda_error"] for row in rows if "cuda_error" in row), "")
    item = result.kernels.get(kernel)
    if item is not None and item.illegal:
        error_text = item.illegal
    elif result.code and not error_text:
        error_text = result.crash or f"the program ended with code {result.code}"
    return _Run([row for row in rows if "size" in row], error_text, item)


def _describe(row: dict[str, Any]) -> str:
    """Describe the first wrong number of a row."""
    place = f"number {row['first_wrong']} is" if row["numbers"] > 1 else "the result is"
    if columns := row["columns"]:
        rows = row["numbers"] // columns
        place = f"row {row['first_wrong'] // columns}, column {row['first_wrong'] % columns} of out ({rows} x {columns}) is"
    return f"with n = {row['size']} {place} {row['given']} and should be {row['right']}"


def _first(texts: Any) -> str:
    return next((text for text in texts if text), "")


def _count(item: emulator.Kernel | None, kernel: str, counted: int, blocks: int) -> dict[str, Any]:
    """Return the memory requests of the warps when every block and every tile is full."""
    keys = (
        "load_requests", "load_sectors_per_request", "store_sectors_per_request", "lanes_per_request",
        "bank_conflicts_per_request", "shared_loads", "atomics", "atomics_per_block", "load_bytes", "bytes", "bytes_needed",
        "bytes_too_many",
    )  # fmt: skip
    if item is None:
        return dict.fromkeys(keys)
    load, store, needed_bytes = item.global_load, item.global_store, count_bytes(kernel, counted)
    in_memory = load.requests + store.requests
    conflicts = [counts.conflicts_per_request for counts in (item.shared_load, item.shared_store) if counts.requests]
    return {
        "load_requests": load.requests,
        "load_sectors_per_request": load.sectors_per_request,
        "store_sectors_per_request": store.sectors_per_request,
        "lanes_per_request": (load.lanes + store.lanes) / in_memory if in_memory else None,
        "bank_conflicts_per_request": max(conflicts, default=None),  # of loads or of stores, whichever has more
        "shared_loads": item.shared_load.requests,
        "atomics": item.atomics,
        "atomics_per_block": item.atomics / blocks,
        "load_bytes": load.bytes,
        "bytes": load.bytes + store.bytes,
        "bytes_needed": needed_bytes,
        "bytes_too_many": None if needed_bytes is None else load.bytes + store.bytes - needed_bytes,
    }


def find_fault(row: dict[str, Any]) -> str:
    """Return the first fault of a kernel, with the thread and the line, or an empty text if there is no fault."""
    faults = [
        (row["out_of_bounds"], row["where"]), (row["barrier_divergence"], row["diverged"]),
        (row["unwritten_reads"], row["unwritten"]), (row["races"], row["race"]),
        (row["ended"], row["ended"]), (row["wrong_sizes"], row["wrong"]),
    ]  # fmt: skip
    return next((text for count, text in faults if count), "")


def summarise(row: dict[str, Any]) -> str:
    """Describe a kernel in one line: its first fault or, without a fault, the memory requests of its warps."""
    if fault := find_fault(row):
        return f"{row['kernel']} ({row['whose']}): {fault}"
    figures = {
        "sectors a load": row["load_sectors_per_request"], "sectors a store": row["store_sectors_per_request"],
        "bank conflicts per request": row["bank_conflicts_per_request"],
    }  # fmt: skip
    words = ", ".join(f"{value:.3g} {name}" for name, value in figures.items() if value is not None)
    return f"{row['kernel']} ({row['whose']}): right; {words}"


def shape_of_transpose(elements: int) -> tuple[int, int]:
    """Return the rows and columns of the harness's transpose: nearly square, with at most `elements` elements."""
    rows = max(1, math.isqrt(elements))
    return rows, elements // rows
