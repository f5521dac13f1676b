"""A solution of 3.1: a reduce-scatter of n - 1 steps, then an all-gather of n - 1 steps."""

from __future__ import annotations

import torch
import torch.distributed as dist


def ring_all_reduce(tensor: torch.Tensor, rank: int, size: int) -> None:
    """Sum `tensor` over all ranks, in place."""
    flat = tensor.view(-1)
    chunks = flat.tensor_split(size)
    following, preceding = (rank + 1) % size, (rank - 1) % size
    for step in range(2 * (size - 1)):
        outgoing, incoming = chunks[(rank - step) % size], chunks[(rank - step - 1) % size]
        arriving = torch.empty_like(incoming)
        sending = dist.isend(outgoing, following)
        dist.irecv(arriving, preceding).wait()
        if step < size - 1:
            incoming += arriving
        else:
            incoming.copy_(arriving)
        sending.wait()
