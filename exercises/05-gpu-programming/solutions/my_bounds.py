"""A solution of 5.7: operations over bytes, compared with the ridge."""

from __future__ import annotations


def find_bound(kernel: str, n: int, ridge: float) -> str:
    """Return "memory" or "compute"."""
    flops, moved = {
        "saxpy": (2 * n, 12 * n),
        "layer norm": (8 * 1024 * n, 8 * 1024 * n),
        "stencil": (6 * n * n, 8 * n * n),
        "spmv": (2 * 8 * n, 8 * 12 * n + 16 * n),
        "fft": (5 * 4096 * 12 * n, 16 * 4096 * n),
        "forces": (20 * n * n, 28 * n),
        "gemm": (2 * n**3, 12 * n * n),
    }[kernel]
    return "memory" if flops / moved < ridge else "compute"
