"""Solve the attention of 8.2 by the online softmax over pages: highest score, sum of weights and weighted values so far."""

from __future__ import annotations

import torch


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: list[int], length: int) -> torch.Tensor:
    """Return attention of the last T of `length` tokens, page by page."""
    count, heads, dim = q.shape
    size, group = keys.shape[1], heads // keys.shape[2]
    q = q.view(count, -1, group, dim)
    places = torch.arange(length - count, length, device=q.device)
    highest = torch.full(q.shape[:3], float("-inf"), dtype=q.dtype, device=q.device)
    total, out = torch.zeros_like(highest), torch.zeros_like(q)
    for number, page in enumerate(table):
        k, v = keys[page], values[page]
        scores = torch.einsum("tkgd,nkd->tkgn", q, k) * dim**-0.5
        is_visible = number * size + torch.arange(size, device=q.device) <= places[:, None]
        scores = scores.masked_fill(~is_visible[:, None, None], float("-inf"))
        new = torch.maximum(highest, scores.amax(-1))
        weights, shrink = torch.exp(scores - new[..., None]), torch.exp(highest - new)
        total = total * shrink + weights.sum(-1)
        out = out * shrink[..., None] + torch.einsum("tkgn,nkd->tkgd", weights, v)
        highest = new
    return (out / total[..., None]).reshape(count, heads, dim)
