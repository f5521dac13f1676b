"""A solution of 6.4: it saves the whole state in slices by torch's own functions, and reads each overlap of two blocks once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict


def state(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, generator: torch.Generator) -> dict[str, Any]:
    """Return everything that training needs to continue; tensors stay in slices."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optimizer": moments, "step": step, "generator": generator.get_state()}


def restore(model: nn.Module, optimizer: torch.optim.Optimizer, generator: torch.Generator, saved: dict[str, Any]) -> int:
    """Restore the training run, and return the number of the next step."""
    set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    generator.set_state(saved["generator"])
    return int(saved["step"])


def plan_reads(slices: list[dict], wanted: dict) -> list[dict]:
    """Return a read for each place at which a saved slice overlaps the wanted one."""
    reads = {}
    for saved in slices:
        begin = [max(place, other) for place, other in zip(saved["offset"], wanted["offset"], strict=True)]
        end = [min(a, b) for a, b in zip(find_end(saved), find_end(wanted), strict=True)]
        size = [last - first for first, last in zip(begin, end, strict=True)]
        if min(size) > 0:
            source = [first - place for first, place in zip(begin, saved["offset"], strict=True)]
            target = [first - place for first, place in zip(begin, wanted["offset"], strict=True)]
            reads[tuple(begin)] = {"file": saved["file"], "from": source, "to": target, "size": size}
    return list(reads.values())


def find_end(block: dict) -> list[int]:
    """Return the place after the last number of a slice, in each dimension."""
    return [place + length for place, length in zip(block["offset"], block["size"], strict=True)]
