"""A solution of 6.4: weights, moments, the number of steps, and the state of the generator, by torch's own functions."""

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
