"""Solve the experts of 8.7 with one pair of ranks after the other. A token goes to a rank once, with its gates."""

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
    """Return the sum of the ranks' weighted outputs for this rank's tokens."""
    ranks, rank, k = dist.get_world_size(group), dist.get_rank(group), chosen.shape[1]
    each = experts // ranks
    goes = [((chosen // each) == other).any(1).nonzero().flatten() for other in range(ranks)]
    counts = [torch.zeros(ranks, dtype=torch.int64) for _ in range(ranks)]
    dist.all_gather(counts, torch.tensor([len(rows) for rows in goes]), group=group)

    def swap(mine: list[torch.Tensor], like: list[torch.Tensor]) -> list[torch.Tensor]:
        others = [other for other in range(ranks) if other != rank]
        work = [dist.isend(mine[other], group=group, group_dst=other) for other in others if len(mine[other])]
        for other in others:
            if len(like[other]):
                dist.recv(like[other], group=group, group_src=other)
        for one in work:
            one.wait()
        like[rank] = mine[rank]
        return like

    sizes = [int(counts[other][rank]) for other in range(ranks)]
    rows = swap([x[place] for place in goes], [x.new_empty(size, x.shape[1]) for size in sizes])
    numbers = swap([chosen[place] for place in goes], [chosen.new_empty(size, k) for size in sizes])
    weights = swap([gates[place] for place in goes], [gates.new_empty(size, k) for size in sizes])
    outputs = [torch.zeros_like(some) for some in rows]
    for other in range(ranks):
        for expert in range(rank * each, (rank + 1) * each):
            place, slot = (numbers[other] == expert).nonzero(as_tuple=True)
            outputs[other][place] += weights[other][place, slot, None] * compute(expert, rows[other][place])
    result = torch.zeros_like(x)
    for other, back in enumerate(swap(outputs, [x.new_empty(len(place), x.shape[1]) for place in goes])):
        result[goes[other]] += back
    return result
