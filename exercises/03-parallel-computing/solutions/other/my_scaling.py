"""The same figures from rates: samples per second of one worker and of all, and the two losses in order of size."""

from __future__ import annotations

Times = tuple[float, float, float]


def take_apart(mode: str, workers: int, alone: Times, step: Times, silent: Times) -> dict[str, object]:
    """Return the figures of one point of the curve."""
    samples = workers if mode == "weak" else 1  # in batches of one worker
    rate, rate_of_one = samples / step[1], 1 / alone[1]
    efficiency = rate / rate_of_one / workers
    serial = (1 / efficiency - 1) / (workers - 1)
    per_worker = samples / workers
    losses = {"communication": step[1] - silent[1], "slower computing": silent[1] - per_worker * alone[1]}
    smaller, larger = sorted(losses, key=lambda name: losses[name])
    noise = (step[2] - step[0]) + (silent[2] - silent[0]) + per_worker * (alone[2] - alone[0])
    clear = losses[larger] > noise and losses[larger] - losses[smaller] > noise
    return {
        "speedup": efficiency * workers,
        "efficiency": efficiency * 100,
        "serial": serial,
        "bottleneck": larger if clear else None,
    }
