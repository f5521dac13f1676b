"""Figures of a scaling curve: speed-up, efficiency, and what a step loses; and what the learner says about two curves."""

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


def losses_ms(step_ms: float, silent_ms: float, one_ms: float, share: float) -> dict[str, float]:
    """Return the breakdown of a step: its ideal time, what slower computing added, and what communication added.

    `silent_ms` is the same step without communication. `one_ms` is one worker's step with the whole batch, of which each worker
    now has `share`. The three parts add up to the step. A loss below 0 is only noise.
    """
    ideal = one_ms * share
    return {"ideal_ms": ideal, "slower_computing_ms": silent_ms - ideal, "communication_ms": step_ms - silent_ms}


def contradicts(bottleneck: str, row: Mapping[str, Any]) -> bool:
    """Return whether a named bottleneck contradicts the measured row: it cost nothing, or less than the other loss."""
    if bottleneck == NONE:
        return False
    costs_ms = {COMMUNICATION: row["communication_ms"], COMPUTING: row["slower_computing_ms"]}
    return costs_ms.get(bottleneck, 0.0) <= 0 or costs_ms[bottleneck] < max(costs_ms.values())


def diagnose_curves(_world: object, curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """Return what my_diagnosis.py says about each curve. Raises an error if a figure is missing, or is not a number."""
    diagnose = importlib.import_module("my_diagnosis").diagnose
    answers = {mode: diagnose(curve) for mode, curve in curves.items()}
    return {
        mode: {
            "efficiency": float(answer["efficiency"]),
            "bottleneck": NONE if answer["bottleneck"] is None else str(answer["bottleneck"]),
            "overhead_grows": answer["overhead_grows"] and bool(answer["overhead_grows"]),
        }
        for mode, answer in answers.items()
    }
