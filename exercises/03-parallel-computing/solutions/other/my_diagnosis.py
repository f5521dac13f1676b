"""Another solution of 3.7: the error of each median is estimated from many samples drawn from the times (bootstrap)."""

from __future__ import annotations

import random
from statistics import median

DRAWS = 200


def _draw_medians(times: list[float], source: random.Random) -> list[float]:
    return [median(source.choices(times, k=len(times))) for _ in range(DRAWS)]


def _surely_above_zero(values: list[float]) -> bool:
    return sorted(values)[DRAWS // 50] > 0


def diagnose(curve: list[dict]) -> dict[str, object]:
    """Return the efficiency, the losses, the bottleneck, and whether the overhead grows."""
    source = random.Random(0)
    alone = _draw_medians(curve[0]["step_s"], source)
    steps = [_draw_medians(point["step_s"], source) for point in curve[1:]]
    silent = _draw_medians(curve[-1]["silent_s"], source)
    workers, work = curve[-1]["workers"], curve[-1]["samples"] / curve[0]["samples"]
    triples = list(zip(alone, silent, steps[-1], strict=True))
    communication = [step - quiet for _, quiet, step in triples]
    computing = [quiet - work / workers * one for one, quiet, _ in triples]
    lead = [a - b for a, b in zip(communication, computing, strict=True)]
    bottleneck = None
    if _surely_above_zero(communication) and _surely_above_zero(lead):
        bottleneck = "communication"
    elif _surely_above_zero(computing) and _surely_above_zero([-value for value in lead]):
        bottleneck = "slower computing"
    serial = [
        [(step / one - 1 / point["workers"]) / (1 - 1 / point["workers"]) for step, one in zip(drawn, alone, strict=True)]
        for point, drawn in zip(curve[1:], steps, strict=True)
    ]
    growth = [last - first for last, first in zip(serial[-1], serial[0], strict=True)]
    efficiency = 100 * work / workers * median(curve[0]["step_s"]) / median(curve[-1]["step_s"])
    grows = None if work != 1 else len(serial) > 1 and _surely_above_zero(growth)
    one, quiet, step = (1e3 * median(times) for times in (curve[0]["step_s"], curve[-1]["silent_s"], curve[-1]["step_s"]))
    losses = {"communication": step - quiet, "slower computing": quiet - work / workers * one}
    return {"efficiency": efficiency, "losses_ms": losses, "bottleneck": bottleneck, "overhead_grows": grows}
