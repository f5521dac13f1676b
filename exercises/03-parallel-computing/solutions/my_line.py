"""A solution of 3.3: it fits a line to the medians by weighted least squares, and leaves out sizes that do not fit."""

from __future__ import annotations

from statistics import median

TOLERANCE = 0.15  # of the time: more than medians vary, and less than a disturbance


def read_curve(samples: list[tuple[int, float]]) -> tuple[float, float, int | None]:
    """Return the latency (seconds), the bandwidth (bytes per second), and the size in bytes at which the plateau begins."""
    times: dict[int, list[float]] = {}
    for size, seconds in samples:
        times.setdefault(size, []).append(seconds)
    points = {size: median(seconds) for size, seconds in times.items()}
    latency, per_byte = fit(points)
    for _ in range(len(points) // 4):
        errors = {size: abs(time / (latency + per_byte * size) - 1) for size, time in points.items()}
        worst = max(errors, key=lambda size: errors[size])
        others = {size: time for size, time in points.items() if size != worst}
        if errors[worst] > TOLERANCE and min(fit(others)) > 0:
            points = others
            latency, per_byte = fit(points)
    bandwidth = 1 / per_byte
    plateau = min((size for size in times if size >= 9 * latency * bandwidth), default=None)
    return latency, bandwidth, plateau


def fit(points: dict[int, float]) -> tuple[float, float]:
    """Fit a line with the least squares of the errors in percent. Return its latency and its seconds per byte."""
    weights = {size: 1 / time**2 for size, time in points.items()}
    total = sum(weights.values())
    mean_size = sum(weights[size] * size for size in points) / total
    mean_time = sum(weights[size] * time for size, time in points.items()) / total
    spread = sum(weights[size] * (size - mean_size) ** 2 for size in points)
    per_byte = sum(weights[size] * (size - mean_size) * (time - mean_time) for size, time in points.items()) / spread
    return mean_time - per_byte * mean_size, per_byte
