"""Solve the slow job of 9.8: for each kind, compare the worst part with a typical one in every step."""

from __future__ import annotations

import statistics

import torch


def find_slow(seconds: dict[str, torch.Tensor]) -> tuple[str, int | None]:
    """Return the kind of the sick part, and its number."""
    steps, dp, pp, tp = seconds["compute"].shape
    for p in range(pp):
        stage = seconds["compute"][:, :, p]
        typical = [float(step.median()) for step in stage]
        above = torch.stack([step > 1.05 * middle for step, middle in zip(stage, typical, strict=True)]).sum(0)
        if above.max() > 0.6 * steps:
            place = int(above.argmax())
            return "gpu", (place // tp * pp + p) * tp + place % tp
    rings = [statistics.median(seconds["ring_dp"][:, :, p].flatten().tolist()) for p in range(pp)]
    if max(rings) > 1.5 * statistics.median(rings):
        return "link", rings.index(max(rings))
    late = [0] * dp
    for step in seconds["wait_dp"]:
        late[int(step.flatten(1).mean(1).argmin())] += 1
    return ("data", late.index(max(late))) if max(late) >= 0.75 * steps else ("nobody", None)
