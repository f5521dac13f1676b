"""Speed-up, efficiency, serial share and bottleneck of one point of a scaling curve."""

from __future__ import annotations

Times = tuple[float, float, float]


def take_apart(mode: str, workers: int, alone: Times, step: Times, silent: Times) -> dict[str, object]:
    """Return the figures of one point of the curve."""
    share = 1 / workers if mode == "strong" else 1.0
    ideal = [share * time for time in alone]
    speedup = workers * ideal[1] / step[1]
    serial = (1 / speedup - 1 / workers) / (1 - 1 / workers)
    communication, slower = step[1] - silent[1], silent[1] - ideal[1]
    noise = sum(times[2] - times[0] for times in (ideal, step, silent))
    named = max(communication, slower) > noise and abs(communication - slower) > noise
    bottleneck = "communication" if communication > slower else "slower computing"
    return {
        "speedup": speedup,
        "efficiency": 100 * speedup / workers,
        "serial": serial,
        "bottleneck": bottleneck if named else None,
    }
