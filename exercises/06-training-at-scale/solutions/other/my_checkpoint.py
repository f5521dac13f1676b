"""Another solution of 6.4, without torch's helper: it names parameters, creates moments one by one, and loads all in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def state(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, generator: torch.Generator) -> dict[str, Any]:
    """Return the tensors of the training run itself, so that a load changes it. A new optimizer first gets moments of 0."""
    weights, moments = dict(model.named_parameters()), {}
    for name, weight in weights.items():
        weight_state = optimizer.state[weight]
        if not weight_state:
            weight_state |= {
                "step": torch.zeros(()),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }
        moments[name] = dict(weight_state)
    tensors = {name: weight.detach() for name, weight in weights.items()}
    return {"model": tensors, "optimizer": moments, "step": torch.tensor(step), "generator": {"bytes": generator.get_state()}}


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, saved: dict[str, Any]) -> int:
    """Restore the generator, and return the step number. Weights and moments are already in place."""
    generator.set_state(saved["generator"]["bytes"])
    return int(saved["step"].item())


def plan_reads(slices: list[dict], wanted: dict) -> list[dict]:
    """Return the reads that fetch one copy of each slice, dimension by dimension."""
    copies = {tuple(block["offset"]): block for block in slices if 0 not in block["size"]}
    reads = []
    for block in copies.values():
        read: dict[str, Any] = {"file": block["file"], "from": [], "to": [], "size": []}
        for saved_at, saved_size, at, size in zip(
            block["offset"], block["size"], wanted["offset"], wanted["size"], strict=True
        ):
            numbers = range(max(saved_at, at), min(saved_at + saved_size, at + size))
            read["from"].append(numbers.start - saved_at)
            read["to"].append(numbers.start - at)
            read["size"].append(len(numbers))
        if 0 not in read["size"]:
            reads.append(read)
    return reads
