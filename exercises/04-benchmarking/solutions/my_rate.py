"""A solution of 4.2: burst and sustained rate of a run of matrix products."""

from __future__ import annotations

from statistics import median


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float]:
    """Return the TFLOP/s of the first second and of the second half, and the percentage of the peak."""
    operations = 2 * m * k * n
    start, (last_began, last_took) = calls[0][0], calls[-1]
    middle = (start + last_began + last_took) / 2
    early = [took for begin, took in calls if begin < start + 1]
    late = [took for begin, took in calls if begin >= middle]
    sustained = operations * len(late) / sum(late) / 1e12
    return {"burst": operations / median(early) / 1e12, "sustained": sustained, "percent": 100 * sustained / peak_tflops}
