"""Another solution of 9.3: tokens are brought into the order of the sequence, and back."""

from __future__ import annotations

import torch


def attention(q, k, v, positions, all_to_all, block):
    """Sort the tokens by position before attention, and undo it after."""
    ranks, order = len(positions), torch.cat(positions)
    place = order.argsort()
    full = []
    for x in (q, k, v):
        arrived = all_to_all([x.unflatten(0, (ranks, -1))[rank] for rank in range(ranks)])
        full.append(torch.cat(arrived, dim=1)[:, place])
    out, _ = block(*full, order[place], order[place])
    back = out[:, place.argsort()]
    return torch.cat(all_to_all(torch.tensor_split(back, ranks, dim=1)), dim=0)
