"""Solve the exchange of heads of 9.3: sort tokens by position before attention, and restore their order afterwards."""

from __future__ import annotations

import torch


def attention(q, k, v, positions, all_to_all, block):
    """Return the output. Tokens are sorted by position before attention, and their order is restored afterwards."""
    ranks, order = len(positions), torch.cat(positions)
    place = order.argsort()
    full = []
    for x in (q, k, v):
        arrived = all_to_all([x.unflatten(0, (ranks, -1))[rank] for rank in range(ranks)])
        full.append(torch.cat(arrived, dim=1)[:, place])
    out, _ = block(*full, order[place], order[place])
    back = out[:, place.argsort()]
    return torch.cat(all_to_all(torch.tensor_split(back, ranks, dim=1)), dim=0)
