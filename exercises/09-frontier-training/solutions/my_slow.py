"""Solve the slow job of 9.8 with medians over the steps, compared within a stage."""

from __future__ import annotations

import torch


def find_slow(seconds: dict[str, torch.Tensor]) -> tuple[str, int | None]:
    """Return the kind of the sick part, and its number."""
    compute = seconds["compute"].median(0).values
    stages = compute.transpose(0, 1).flatten(1).median(1).values
    relative = compute / stages[None, :, None]
    if relative.max() > 1.05:
        return "gpu", int(relative.argmax())
    rings = seconds["ring_dp"].median(0).values.mean((0, 2))
    if rings.max() > 1.5 * rings.median():
        return "link", int(rings.argmax())
    waits = seconds["wait_dp"].mean((2, 3))
    last = waits.argmin(1)
    copy = int(last.mode().values)
    if (last == copy).double().mean() >= 0.75:
        return "data", copy
    return "nobody", None
