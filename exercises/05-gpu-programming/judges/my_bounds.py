"""Judges my_bounds.py of 5.7: its answer must change at the ridge that equals the kernel's intensity."""

from __future__ import annotations

import math
from typing import Any

from gpucourse.judge import Part, Verdict, Way

LOWEST, HIGHEST = 1e-6, 1e12  # operations per byte, below and above those of any kernel at these sizes
SIZES = {"saxpy": 1 << 20, "layer norm": 3000, "stencil": 2048, "spmv": 100_000, "fft": 500, "forces": 1024, "gemm": 128}
TOLERANCE = 0.02
WAYS = {
    "reversed": Way(
        "{kernel}: below the ridge you say compute, and above it memory. A kernel with few operations per byte waits for its "
        "bytes",
        ("flops / moved < ridge", "flops / moved > ridge"),
    ),
    "numbers-for-bytes": Way(
        "{kernel}: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: you count numbers, and "
        "each has 4 bytes",
        ("flops / moved < ridge", "4 * flops / moved < ridge"),
    ),
    "pair-as-one": Way(
        "{kernel}: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: a multiplication and an "
        "addition are two operations, even if a device performs both in one step",
        ('"gemm": (2 * n**3', '"gemm": (n**3'),
    ),
    "array-missing": Way(
        "{kernel}: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: an array is missing, "
        "either one that is written, or one that is read before it is written",
        ('"saxpy": (2 * n, 12 * n)', '"saxpy": (2 * n, 8 * n)'),
    ),
    "index-missing": Way(
        "spmv: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: each number has a "
        "column index of 8 bytes, twice as many as the number itself",
        ("8 * 12 * n + 16 * n", "8 * 4 * n + 16 * n"),
    ),
    "complex-as-real": Way(
        "fft: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: a complex number has 8 bytes, "
        "and one is read and one is written",
        ("16 * 4096 * n", "8 * 4096 * n"),
    ),
    "bytes-of-each-pair": Way(
        "forces: your answer changes at {given:.3g} operations per byte, not at {right:.3g}: you count as many "
        "pairs as particles. Each of n particles has n pairs, but is read only once: that is why arithmetic limits it",
        ("28 * n)", "28 * n * n)"),
    ),
    "size-forgotten": Way(
        "{kernel}: your answer changes at {given:.3g} operations per byte at every size. Operations grow faster than bytes: "
        "at n = {n:,} there are {right:.3g} per byte",
        ("2 * n**3, 12 * n * n", "2 * 16**3, 12 * 16 * 16"),
    ),
}


def judge(part: Part) -> None:
    """Judge each kernel at two sizes: find by bisection the ridge at which the answer changes."""
    find_bound = part.function("find_bound")
    for kernel, size in SIZES.items():
        thresholds = {n: _find_threshold(part, find_bound, kernel, n) for n in (size, 4 * size)}
        for n, answer in thresholds.items():
            right = count_intensity(kernel, n)
            if not math.isclose(answer, right, rel_tol=TOLERANCE):
                way = _name_way(kernel, n, answer, right, constant=math.isclose(*thresholds.values(), rel_tol=TOLERANCE))
                values = {"kernel": kernel, "given": answer, "right": right, "n": n}
                if way is None:
                    says = f"{kernel}: your answer changes at {answer:.3g} operations per byte, not at {right:.3g}"
                    raise Verdict("failed", "other", says, f"n = {n:,}")
                raise part.wrong(way, f"n = {n:,}", **values)
    part.note(f"right for {len(SIZES)} kernels at two sizes, at every ridge")


def count_intensity(kernel: str, n: int) -> float:
    """Return the operations per byte."""
    constant = {"saxpy": 2 / 12, "layer norm": 1.0, "stencil": 6 / 8, "spmv": 16 / 112, "fft": 60 / 16}
    return constant.get(kernel, 20 * n / 28 if kernel == "forces" else 2 * n / 12)


def _find_threshold(part: Part, find_bound: Any, kernel: str, n: int) -> float:
    """Return the ridge at which the answer changes from compute to memory. Raises Verdict if there is none."""

    def is_memory(ridge: float) -> bool:
        word = part.call(find_bound, kernel, n, ridge, case=f"{kernel}, n = {n:,}, ridge {ridge:.3g}")
        if word not in ("memory", "compute"):
            says = f"it returned {word!r}: the answers are 'memory' and 'compute'"
            raise Verdict("failed", "word", says, f"{kernel}, n = {n:,}")
        return bool(word == "memory")

    low, high = LOWEST, HIGHEST
    if is_memory(low) and not is_memory(high):
        raise part.wrong("reversed", f"n = {n:,}", kernel=kernel)
    if is_memory(low) or not is_memory(high):
        says = f"{kernel}: the same answer for ridges of {LOWEST:g} and {HIGHEST:g}. Compare its intensity with the ridge"
        raise Verdict("failed", "always", says, f"n = {n:,}")
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_memory(middle) else (middle, high)
    return math.sqrt(low * high)


def _name_way(kernel: str, n: int, answer: float, right: float, *, constant: bool) -> str | None:
    """Return the wrong way that explains the difference between the right and the counted intensity, or None."""
    times = answer / right
    if kernel in {"forces", "gemm"} and constant:
        return "bytes-of-each-pair" if math.isclose(answer, 20 / 28, rel_tol=TOLERANCE) else "size-forgotten"
    ways = {4.0: "numbers-for-bytes"}
    ways |= {0.5: "pair-as-one"} if kernel in {"saxpy", "spmv", "gemm"} else {}
    ways |= {2.0: "complex-as-real"} if kernel == "fft" else {}
    ways |= {1.5: "array-missing", 3.0: "array-missing"} if kernel in {"saxpy", "gemm"} else {}
    ways |= {2.0: "array-missing"} if kernel in {"layer norm", "stencil"} else {}
    ways |= {112 / 48: "index-missing", 112 / 32: "index-missing"} if kernel == "spmv" else {}
    return next((way for factor, way in ways.items() if math.isclose(times, factor, rel_tol=TOLERANCE)), None)
