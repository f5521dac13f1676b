"""Apply the learner's read_curve to the times of a run, and compare its lines with those of bandwidth.py."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import own_part

if TYPE_CHECKING:
    import ranks

Samples = list[tuple[int, float]]
FACTOR, ADDITION = 1.5, 10.0  # a line may miss by FACTOR times the course's error, plus ADDITION percent


def read_curves(_: ranks.World | None, curves: dict[str, Samples]) -> dict[str, list[float | None]]:
    """Return the learner's latency, bandwidth, and plateau or None, for each collective."""
    from my_line import read_curve

    answers = {}
    for name, samples in curves.items():
        latency, bandwidth, plateau = read_curve([(size, seconds) for size, seconds in samples])
        answers[name] = [float(latency), float(bandwidth), None if plateau is None else float(plateau)]
    return answers


def typical_error_percent(samples: Samples, latency: float, bandwidth: float) -> float | None:
    """Return how far the medians of the sizes typically are from the line, in percent: the geometric mean over all sizes.

    Return None if latency or bandwidth is not above 0.
    """
    if min(latency, bandwidth) <= 0:
        return None
    times: dict[int, list[float]] = {}
    for size, seconds in samples:
        times.setdefault(size, []).append(seconds)
    ratios = [(latency + size / bandwidth) / statistics.median(times[size]) for size in times]
    return 100 * (statistics.geometric_mean(max(ratio, 1 / ratio) for ratio in ratios) - 1)


def make_rows(outcome: own_part.Outcome, curves: dict[str, Samples], factors: dict[str, float]) -> list[dict[str, object]]:
    """Return a row for each collective with the learner's numbers. `factors` has the bus factor of each."""
    rows: list[dict[str, object]] = []
    for name, (latency, bandwidth, plateau) in (outcome.results[0] if outcome.state == "ran" else {}).items():
        rows.append({
            "collective": f"{name}, yours", "latency_us": latency * 1e6,
            "asymptote_busbw_gb_per_s": bandwidth / 1e9 * factors[name],
            "typical_error_percent": typical_error_percent(curves[name], latency, bandwidth),
            "plateau": "not reached" if plateau is None else f"from {plateau:,.0f} bytes",
        })  # fmt: skip
    return rows


def list_points(
    outcome: own_part.Outcome, name: str, samples: Samples, through_ends: tuple[float, float] | None
) -> list[dict[str, object]]:
    """Return the points of a plot for one collective: the median of each size, the line through both ends, and the learner's.

    `through_ends` has the latency and the bandwidth of the line through both ends, in seconds and bytes per second.
    """
    times: dict[int, list[float]] = {}
    for size, seconds in samples:
        times.setdefault(size, []).append(seconds)
    points: list[dict[str, object]] = [
        {"line": "median of the calls", "bytes": size, "us": 1e6 * statistics.median(times[size])} for size in sorted(times)
    ]
    own_line = tuple(outcome.results[0][name][:2]) if outcome.state == "ran" else None
    for title, line in (("line through both ends", through_ends), ("your line", own_line)):
        if line and min(line) > 0:
            points += [{"line": title, "bytes": size, "us": 1e6 * (line[0] + size / line[1])} for size in sorted(times)]
    return points


def describe(outcome: own_part.Outcome, rows: list[dict], reference_rows: list[dict], curves: dict[str, Samples]) -> str | None:
    """Return "right", or a sentence on the fault of the learner's lines in this run. Return None if the part is open.

    Real times are not exactly on a line, so the learner's line may miss the medians somewhat more than the line through both
    ends.
    """
    if outcome.state != "ran":
        return outcome.text if outcome.state == "failed" else None
    for row, reference, (name, answer) in zip(rows, reference_rows, outcome.results[0].items(), strict=True):
        if reference["typical_error_percent"] is None:
            continue
        if min(outcome.results[0][name][:2]) <= 0:
            return f"{name}: latency and bandwidth are above 0, and one of yours is not"
        limit = FACTOR * reference["typical_error_percent"] + ADDITION
        if not row["typical_error_percent"] <= limit:
            return f"{name}: your line is off by {row['typical_error_percent']:.0f} %; {limit:.0f} % are allowed"
        latency, bandwidth, plateau = answer
        sizes = (size for size, _ in curves[name])
        if plateau != min((size for size in sizes if size >= 9 * latency * bandwidth), default=None):
            return f"{name}: your plateau is not where your own line gets 90 % of its bandwidth"
    return "right"
