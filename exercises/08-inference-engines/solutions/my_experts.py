"""One row for each token and expert, in the order of the experts: sizes, rows and numbers there, results back."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist


def forward(
    x: torch.Tensor,
    chosen: torch.Tensor,
    gates: torch.Tensor,
    experts: int,
    compute: Callable[[int, torch.Tensor], torch.Tensor],
    group: dist.ProcessGroup | None = None,
) -> torch.Tensor:
    """Return the weighted sum of the rows that come back."""
    ranks, rank = dist.get_world_size(group), dist.get_rank(group)
    each = experts // ranks
    numbers = chosen.flatten()
    order = numbers.argsort(stable=True)
    rows = order // chosen.shape[1]
    sent = torch.bincount(numbers // each, minlength=ranks)
    expected = torch.empty_like(sent)
    dist.all_to_all_single(expected, sent, group=group)
    there, here = sent.tolist(), expected.tolist()
    arrived = x.new_empty(sum(here), x.shape[1])
    dist.all_to_all_single(arrived, x[rows], here, there, group=group)
    arrived_numbers = numbers.new_empty(sum(here))
    dist.all_to_all_single(arrived_numbers, numbers[order], here, there, group=group)
    outputs = torch.empty_like(arrived)
    for expert in range(rank * each, (rank + 1) * each):
        places = arrived_numbers == expert
        outputs[places] = compute(expert, arrived[places])
    back = x.new_empty(len(numbers), x.shape[1])
    dist.all_to_all_single(back, outputs, there, here, group=group)
    result = torch.zeros_like(x)
    result.index_add_(0, rows, back * gates.flatten()[order, None])
    return result
