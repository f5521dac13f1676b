"""A bit that flips in one step of a training run on ranks, for 9.8, and three checks that may see it."""

from __future__ import annotations

from typing import Any

import ranks
import torch
import torch.distributed as dist
from ranks import World

PLACES = ("nowhere", "gradient, before the sum", "weight, after the step")
STEPS, STEP, WIDTH = 5, 3, 64
GRADIENT_BIT, WEIGHT_BIT = 29, 20  # of 32: a bit of the exponent, and one of the fraction


def compute_gradient(weight: torch.Tensor, step: int, rank: int) -> torch.Tensor:
    """Return a rank's gradient in a step. Any rank can compute it again, from the step and the rank's number."""
    source = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(32, WIDTH, generator=source)
    return x.T @ torch.tanh(x @ weight) / 32


def flip_bit(tensor: torch.Tensor, bit: int) -> None:
    """Flip a bit of one number, in place."""
    tensor.view(torch.int32)[5, 7] ^= 1 << bit


def train(world: World, place: str, culprit: int) -> list[dict[str, Any]]:
    """Return, for each step, this rank's checksums and the norm that all ranks log.

    `gradient` is the checksum of this rank's gradient, `again` that of the previous rank's gradient, computed here once more,
    and `weight` that of the weights after the step.
    """
    weight = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(0))
    rows = []
    for step in range(STEPS):
        gradient = compute_gradient(weight, step, world.rank)
        again = compute_gradient(weight, step, (world.rank - 1) % world.size)
        is_sick = world.rank == culprit and step == STEP
        if is_sick and place == PLACES[1]:
            flip_bit(gradient, GRADIENT_BIT)
        row = {"gradient": ranks.checksum(gradient), "again": ranks.checksum(again)}
        dist.all_reduce(gradient)
        weight = weight - 0.01 * gradient / world.size
        if is_sick and place == PLACES[2]:
            flip_bit(weight, WEIGHT_BIT)
        rows.append(row | {"weight": ranks.checksum(weight), "norm": float(gradient.norm() / world.size)})
    return rows


def describe(place: str, logs: list[list[dict[str, Any]]], healthy: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return a row that says which checks detect a flipped bit in the step in which it flips.

    `logs` and `healthy` have the rows of all ranks, with the bit and without. A norm shows it if it changes by more than 1 %.
    """
    size, step = len(logs), [log[STEP] for log in logs]
    change = max(abs(row["norm"] / its[STEP]["norm"] - 1) for row, its in zip(step, healthy, strict=True))
    replayed = [rank for rank in range(size) if step[(rank + 1) % size]["again"] != step[rank]["gradient"]]
    return {
        "where": place, "norm_change_percent": 100 * change, "seen_by_norm": change > 0.01,
        "seen_by_checksum": len({row["weight"] for row in step}) > 1, "seen_by_replay": bool(replayed),
        "replay_names": replayed[0] if len(replayed) == 1 else None,
    }  # fmt: skip
