"""One step from several micro-batches. Each is weighted by its share of the samples, and the last one sends the gradients."""

from __future__ import annotations

import contextlib

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def one_group(
    model: DistributedDataParallel, optimizer: torch.optim.Optimizer, pieces: list[tuple[torch.Tensor, torch.Tensor]]
) -> None:
    """Make one step of `optimizer`, as if all samples of `pieces` were one batch."""
    samples = sum(len(x) for x, _ in pieces)
    optimizer.zero_grad()
    for number, (x, y) in enumerate(pieces, start=1):
        quiet = model.no_sync() if number < len(pieces) else contextlib.nullcontext()
        with quiet:
            loss = cross_entropy(model(x), y) * len(x) / samples
            loss.backward()
    optimizer.step()
