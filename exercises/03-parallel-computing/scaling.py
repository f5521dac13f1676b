"""Figures of a scaling curve: speed-up and efficiency; and the learner's diagnosis of two curves."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

NONE = "none can be named"
COMMUNICATION, COMPUTING = "communication", "slower computing"


def counts(maximum: int) -> list[int]:
    """Return the numbers of workers to measure: 1, 2, 4, 8 ... and `maximum` itself."""
    return sorted({2**power for power in range(maximum.bit_length())} | {maximum})


def speedup(samples_per_s: float, samples_per_s_of_one: float) -> float:
    """Return S: the samples per second as a multiple of one worker's. For the same amount of work, this is T1 / Tn."""
    return samples_per_s / samples_per_s_of_one


def efficiency_percent(times: float, workers: int) -> float:
    """Return E = S / n, in percent."""
    return 100 * times / workers


def contradicts(bottleneck: str, losses_ms: Mapping[str, float]) -> bool:
    """Return whether the losses contradict a named bottleneck, because it cost nothing, or less than the other cause."""
    if bottleneck == NONE:
        return False
    return losses_ms.get(bottleneck, 0.0) <= 0 or losses_ms[bottleneck] < max(losses_ms.values())


def diagnose_curves(_world: object, curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the figures of my_diagnosis.py for each curve. Raises an error if a figure is missing, or is not a number."""
    diagnose = importlib.import_module("my_diagnosis").diagnose
    answers = {mode: diagnose(curve) for mode, curve in curves.items()}
    return {
        mode: {
            "efficiency": float(answer["efficiency"]),
            "losses_ms": {name: float(answer["losses_ms"][name]) for name in (COMMUNICATION, COMPUTING)},
            "bottleneck": NONE if answer["bottleneck"] is None else str(answer["bottleneck"]),
            "overhead_grows": answer["overhead_grows"] and bool(answer["overhead_grows"]),
        }
        for mode, answer in answers.items()
    }
