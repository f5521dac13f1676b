"""Record the memory accesses of warps in the emulator of module 5, for the pictures of sectors, banks and the tree.

python -m docs.pictures.record_accesses    writes accesses.json next to this file; needs g++ on Linux
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from docs.pictures.sources import EXERCISES, write_record

FOLDER = EXERCISES / "05-gpu-programming"
SECTOR, LINE, WORD = 32, 128, 4  # bytes
BLOCK, STRIDE, ELEMENTS = 256, 2, 4096
TREE_LINE = "part[t] += part[t + d]"


def record(file: Path, kernel: str, elements: int, folder: Path) -> list[Any]:
    """Return the first requests of a kernel of exercise 5.1."""
    findings = importlib.import_module("findings")
    program = findings.build(file, folder)
    run = program.run(kernel, str(BLOCK), str(STRIDE), str(elements), trace=400)
    return list(run.kernels[kernel].trace)


def first_places(requests: list[Any], *, shared: bool, write: bool, unit: int) -> list[int]:
    """Return the addresses of the first such request, relative to the memory unit that contains its first address."""
    request = next(item for item in requests if item.shared == shared and item.write == write)
    addresses = [address for address in request.addresses if address is not None]
    zero = min(addresses) // unit * unit
    return [address - zero for address in addresses]


def list_steps(requests: list[Any], line: int) -> list[list[int]]:
    """Return the threads that add in each step of a tree: those that write their own number in the line of the addition."""
    stores = [item for item in requests if item.shared and item.write]
    zero = min(address for item in stores for address in item.addresses if address is not None)
    steps: list[list[int]] = []
    for item in (item for item in stores if item.line.endswith(f":{line}")):
        threads = [(address - zero) // WORD for address in item.addresses if address is not None]
        if 0 in threads:
            steps.append([])
        steps[-1] += threads
    return steps


def find_line(text: str, words: str) -> int:
    """Return the number of the line that contains these words."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if words in line)


def main() -> None:
    """Run the kernels, and store the addresses of one warp of each."""
    sys.path[:0] = [str(FOLDER), str(FOLDER / "judges"), str(EXERCISES / "shared")]
    solution = (FOLDER / "solutions" / "my_kernels.cu").read_text(encoding="utf-8")
    spread = solution.replace(*importlib.import_module("my_kernels").WAYS["spread"].change)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def load(kernel: str) -> list[int]:
            requests = record(FOLDER / "given.cu", kernel, ELEMENTS, folder)
            return first_places(requests, shared=False, write=False, unit=LINE)

        def column(kernel: str) -> list[int]:
            requests = record(FOLDER / "given.cu", kernel, ELEMENTS, folder)
            return [place // WORD for place in first_places(requests, shared=True, write=False, unit=WORD)]

        def steps(text: str) -> list[list[int]]:
            file = folder / "my_kernels.cu"
            file.write_text(text, encoding="utf-8")
            return list_steps(record(file, "block_sum", BLOCK, folder), find_line(text, TREE_LINE))

        stores = record(FOLDER / "my_warps.cu", "transpose", ELEMENTS, folder)
        document = {
            "what": "requests of one warp of the kernels of 5.1, and the threads that add in each step of block_sum",
            "loads": {kernel: load(kernel) for kernel in ("copy", "strided_copy", "read_field")},
            "stores": {"transpose": first_places(stores, shared=False, write=True, unit=LINE)},
            "words": {kernel: column(kernel) for kernel in ("column_of_32", "column_of_34")},
            "steps": {"halves": steps(solution), "neighbours": steps(spread)},
        }
    write_record("accesses", document)


if __name__ == "__main__":
    main()
