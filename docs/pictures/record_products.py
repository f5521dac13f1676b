"""Record the main memory accesses of the kernels of 5.3 in the emulator, for the pictures of lanes, tiles and limits.

python -m docs.pictures.record_products    writes products.json next to this file; needs g++ on Linux
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from docs.pictures.sources import EXERCISES, load, write_record

FOLDER = EXERCISES / "05-gpu-programming"
N, TILE, WORD, WARP = 64, 16, 4, 32
NAMES = {"naive": "naive", "coalesced": "coalesced", "tiled": f"tiled<{TILE}>", "tensor": "tensor"}
REGISTERS = f"registers<{2 * TILE}, 8, 4>"


def list_loads(kernel: Any) -> list[list[int]]:
    """Return the addresses of each traced load from main memory, in order."""
    requests = (request for request in kernel.trace if not request.shared and not request.write)
    return [[address for address in request.addresses if address is not None] for request in requests]


def find_places(kernel: Any, operand: int, requests: int) -> list[int]:
    """Return the numbers (row times N plus column) of the first matrix (operand 0) or the second one that these first requests
    touch.

    The matrices are apart in memory, the first one at lower addresses. Block (0, 0), which runs first, begins at the first
    number of both.
    """
    loads = list_loads(kernel)
    border = (min(map(min, loads)) + max(map(max, loads))) // 2
    own = [load for load in loads if (min(load) > border) == bool(operand)]
    zero = min(map(min, own))
    return sorted({(address - zero) // WORD for load in own[:requests] for address in load})


def main() -> None:
    """Run the kernels, and store the accesses of one warp and of one block of each, and the bytes of all accesses."""
    emulator = load("05-gpu-programming", "emulator")
    with tempfile.TemporaryDirectory() as folder:
        sources = [FOLDER / "gemm_harness.cu", FOLDER / "solutions" / "my_gemm.cu"]
        program = emulator.build(sources, folder=Path(folder), defines={"TILE": TILE})
        kernels = program.run(str(N), trace=1 << 20, every=True).kernels
    document = {
        "what": f"numbers of both matrices (row x {N} + column) that a warp, or a block, of the kernels of 5.3 asks for; bytes",
        "n": N,
        "tile": TILE,
        "lanes": {name: [find_places(kernels[name], operand, 1) for operand in (0, 1)] for name in ("naive", "coalesced")},
        "block": [find_places(kernels[NAMES["tiled"]], operand, TILE * N // WARP) for operand in (0, 1)],
        "bytes": {name: kernels[key].global_load.bytes for name, key in {**NAMES, "registers": REGISTERS}.items()},
    }
    write_record("products", document)


if __name__ == "__main__":
    main()
