"""Solve the exchange of heads of 9.3: cut heads and join tokens, then cut tokens and join heads."""

from __future__ import annotations

import torch


def attention(q, k, v, positions, all_to_all, block):
    """Return the output: exchange q, k and v, compute this rank's heads, and exchange the result back."""
    ranks = len(positions)

    def turn(x, cut, join):
        return torch.cat(all_to_all(x.chunk(ranks, cut)), join)

    order = torch.cat(positions)
    q, k, v = turn(q, 0, 1), turn(k, 0, 1), turn(v, 0, 1)
    out, _ = block(q, k, v, order, order)
    return turn(out, 1, 0)
