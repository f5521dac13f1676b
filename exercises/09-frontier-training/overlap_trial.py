"""Use my_timeline.py and my_prefetch.py of 9.6 in their own processes, with the orders that a run has recorded."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

Steps = Sequence[Mapping[str, Any]]


def time_steps(_world: object, steps: Steps) -> list[list[list[float]]]:
    """Return the learner's timeline of each step, which has `issues`, `seconds`, `room` and `issue_s`."""
    timeline = importlib.import_module("my_timeline").timeline
    results = []
    for step in steps:
        issues = [(kind, layer) for kind, layer in step["issues"]]
        spans = timeline(issues, step["seconds"], step["room"], step["issue_s"])
        results.append([[float(begin), float(end)] for begin, end in spans])
    return results


def order_steps(_world: object, steps: Steps) -> list[list[list[Any]]]:
    """Return the learner's order of each step, which has `layers`, `ahead_forward`, `ahead_backward` and `frees`."""
    order = importlib.import_module("my_prefetch").order
    return [[[str(kind), int(layer)] for kind, layer in order(**step)] for step in steps]
