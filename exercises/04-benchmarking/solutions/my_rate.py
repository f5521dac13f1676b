"""A solution of 4.2: it compares the windows of a run with its last third, and finds the last window that differs."""

from __future__ import annotations

from statistics import median

WINDOWS, CHANGE = 30, 0.06


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float | None]:
    """Return the TFLOP/s of the first second and of the settled part of the run, when that part begins, and its percentage."""
    operations = 2 * m * k * n
    start = calls[0][0]
    length = sum(calls[-1]) - start
    early = [took for begin, took in calls if begin < start + 1]
    burst = operations / median(early) / 1e12
    final = median(took for begin, took in calls if begin >= start + length * 2 / 3)
    settled_s = 0.0
    for window in range(WINDOWS):
        end_s = length * (window + 1) / WINDOWS
        inside = [took for begin, took in calls if end_s - length / WINDOWS <= begin - start < end_s]
        if inside and abs(median(inside) / final - 1) > CHANGE:
            settled_s = end_s
    if settled_s > length * 2 / 3:
        return {"burst": burst, "settled_s": None, "sustained": None, "percent": None}
    late = [took for begin, took in calls if begin >= start + settled_s]
    sustained = operations * len(late) / sum(late) / 1e12
    return {"burst": burst, "settled_s": settled_s, "sustained": sustained, "percent": 100 * sustained / peak_tflops}
