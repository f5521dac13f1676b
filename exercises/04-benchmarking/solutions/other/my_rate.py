"""Another solution of 4.2: one pass over the calls, with times counted from the first call, and its own median."""

from __future__ import annotations


def rates(m: int, k: int, n: int, calls: list[tuple[float, float]], peak_tflops: float) -> dict[str, float]:
    """Return the TFLOP/s of the first second and of the second half, and the percentage of the peak."""
    origin = calls[0][0]
    length = calls[-1][0] - origin + calls[-1][1]
    first_second, count, busy = [], 0, 0.0
    for begin, took in calls:
        at = begin - origin
        if at < 1:
            first_second.append(took)
        if at >= length / 2:
            count, busy = count + 1, busy + took
    first_second.sort()
    half = len(first_second) // 2
    typical = first_second[half] if len(first_second) % 2 else (first_second[half - 1] + first_second[half]) / 2
    tera = (m * k * n + m * k * n) / 1e12
    return {"burst": tera / typical, "sustained": count * tera / busy, "percent": count * tera / busy / peak_tflops * 100}
