"""Find the fastest bf16 product that the vendor's library reaches on this GPU over many shapes. This is the ceiling for
exercise 4.2.

Prints one JSON object: the best TFLOP/s and the shape. `python -m benchmarks gpu` starts it as a separate process.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

SIDES = (4096, 6144, 8192, 12288, 16384)


def search(sides: Sequence[int]) -> dict[str, object]:
    """Return the best median over all shapes m x k times k x n of these sides. Each median is over several calls on random
    numbers.
    """
    sys.path.append(str(Path(__file__).parents[1] / "exercises" / "shared"))
    bench = importlib.import_module("bench")
    device, results = bench.here(), []
    for m, n, k in itertools.product(sides, repeat=3):
        a = torch.randn(m, k, device=device, dtype=torch.bfloat16)
        b = torch.randn(k, n, device=device, dtype=torch.bfloat16)
        out = torch.empty(m, n, device=device, dtype=torch.bfloat16)
        seconds = bench.time_each(lambda a=a, b=b, out=out: torch.mm(a, b, out=out), device, 12)[2:]  # two to warm up
        results.append((2 * m * n * k / bench.percentile(seconds, 50) / 1e12, (m, n, k)))
    best, shape = max(results)
    return {"bf16_tflops": best, "shape": shape, "shapes": len(results)}


if __name__ == "__main__":
    print(json.dumps(search([int(side) for side in sys.argv[1:]] or SIDES)))
