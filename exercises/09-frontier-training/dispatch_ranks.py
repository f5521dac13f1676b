"""A layer of experts on several ranks, forward and backward, compared with one process: the course's way, and the learner's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from exchange import Exchange
from routing import Layer, Tokens, apply_expert, compute_dense, count_leaving, draw_tokens

Forward = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, "Rank"], torch.Tensor]
NUMBER_BYTES = 8
KINDS = ("dispatch", "combine", "back")


class Rank:
    """This rank's experts, with the three functions that a layer of experts needs."""

    def __init__(self, layer: Layer, rank: int, ranks: int) -> None:
        self.each, self.ranks, self.experts, self.rank = layer.experts // ranks, ranks, layer.experts, rank
        place = slice(rank * self.each, (rank + 1) * self.each)
        self.up, self.down = (part[place].clone().requires_grad_() for part in (layer.up, layer.down))
        self.exchange = Exchange(rank, ranks)
        self.sizes: list[int] = [0] * self.each

    def exchange_counts(self, counts: torch.Tensor) -> torch.Tensor:
        """Return how many rows each rank sends for each expert of this rank (ranks, experts of this rank)."""
        if counts.dtype != torch.int64 or counts.shape != (self.experts,):
            raise ValueError(f"exchange_counts needs int64 ({self.experts}), not {counts.dtype} {tuple(counts.shape)}")
        arriving = torch.empty_like(counts)
        dist.all_to_all_single(arriving, counts.contiguous())
        return arriving.view(self.ranks, self.each)

    def exchange_rows(self, rows: torch.Tensor, send: list[int], receive: list[int]) -> torch.Tensor:
        """Return the rows that arrive. Autograd does not follow this: the learner writes how gradients go back."""
        return self.exchange(rows.detach(), send, receive)

    def compute(self, rows: torch.Tensor, sizes: list[int]) -> torch.Tensor:
        """Return the outputs of this rank's experts for rows that are sorted by expert."""
        if len(sizes) != self.each or sum(sizes) != len(rows):
            raise ValueError(f"compute needs {self.each} sizes that add up to {len(rows)} rows, not {sizes}")
        self.sizes = [int(size) for size in sizes]
        parts = zip(rows.split(self.sizes), self.up, self.down, strict=True)
        return torch.cat([apply_expert(part, up, down) for part, up, down in parts])


def send_to_all(x: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor, rank: Rank) -> torch.Tensor:
    """Return the output for this rank's tokens. Every rank gets all tokens, and computes its experts for all of them."""
    count = len(x)
    sizes = [count] * rank.ranks
    rows = rank.exchange(x.repeat(rank.ranks, 1), sizes, sizes)
    gates = torch.zeros(count, rank.experts, dtype=x.dtype).scatter(1, chosen, weights)
    gates = rank.exchange(gates.view(count, rank.ranks, rank.each).transpose(0, 1).flatten(0, 1), sizes, sizes)
    result = torch.zeros_like(rows)
    for expert in range(rank.each):
        result = result + gates[:, expert : expert + 1] * apply_expert(rows, rank.up[expert], rank.down[expert])
    return rank.exchange(result, sizes, sizes).view(rank.ranks, *x.shape).sum(0)


def _measure_off(value: torch.Tensor | None, right: torch.Tensor) -> float:
    """Return the largest difference as a share of the largest element of `right`, or 1 if there is no value."""
    if value is None:
        return float(right.abs().max() > 0)
    return float((value - right).abs().max() / right.abs().max().clamp_min(1e-30))


def measure(rank: int, ranks: int, layer: Layer, tokens: Tokens, forward: Forward) -> dict[str, Any]:
    """Return the errors of this rank's output and gradients. One process that computes everything is the reference.

    Also return the bytes that the rank sent in each direction, and how many pairs its experts computed.
    """
    place = slice(rank * (len(tokens.x) // ranks), (rank + 1) * (len(tokens.x) // ranks))
    direction = torch.sin(torch.arange(tokens.x.numel(), dtype=torch.float64)).view_as(tokens.x)
    whole = [part.clone().requires_grad_() for part in (tokens.x, tokens.weights, layer.up, layer.down)]
    right = compute_dense(whole[0], whole[1], tokens.chosen, whole[2], whole[3])
    (right * direction).sum().backward()
    here = Rank(layer, rank, ranks)
    x, weights = (part[place].clone().requires_grad_() for part in (tokens.x, tokens.weights))
    output = forward(x, weights, tokens.chosen[place].clone(), here)
    if not isinstance(output, torch.Tensor) or output.shape != x.shape:
        shape = f" {tuple(output.shape)}" if isinstance(output, torch.Tensor) else ""
        raise TypeError(f"forward returned {type(output).__name__}{shape}, and a tensor {tuple(x.shape)} is needed")
    calls = len(here.exchange.forward_bytes)
    (output * direction[place]).sum().backward()
    experts = slice(rank * here.each, (rank + 1) * here.each)
    places = (place, place, experts, experts)
    gradients = {
        name: _measure_off(leaf.grad, full.grad[part] if full.grad is not None else torch.zeros_like(leaf))
        for name, leaf, full, part in zip(("x", "weights", "up", "down"), (x, weights, here.up, here.down), whole, places,
                                          strict=True)
    }  # fmt: skip
    forward_bytes = here.exchange.forward_bytes[:calls]
    back_bytes = here.exchange.backward_bytes + here.exchange.forward_bytes[calls:]  # those of the learner's backward
    return {
        "output_off": _measure_off(output.detach(), right.detach()[place]), "gradients_off": max(gradients.values()),
        "gradients": gradients, "dispatch_bytes": sum(forward_bytes[:-1]), "combine_bytes": sum(forward_bytes[-1:]),
        "back_bytes": sum(back_bytes), "pairs": sum(here.sizes),
    }  # fmt: skip


def send_with_yours(world: Any, experts: int, width: int, count: int, top: int, skew: float) -> dict[str, Any]:
    """Return the measurements of my_dispatch.py on this rank: with drawn choices, and with choices of rank 0's experts only."""
    from my_dispatch import forward

    torch.set_num_threads(1)

    def call(x: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor, rank: Rank) -> torch.Tensor:
        return forward(x, weights, chosen, experts, rank.exchange_counts, rank.exchange_rows, rank.compute)

    layer = Layer(experts, width)
    tokens = draw_tokens(count * world.size, layer, top, skew)
    each = experts // world.size
    top_of_one = min(top, each)
    few = Tokens(tokens.x, tokens.chosen[:, :1] % each + torch.zeros(1, 1, dtype=torch.int64), tokens.weights[:, :1])
    if top_of_one > 1:
        few = Tokens(tokens.x, (few.chosen + torch.arange(top_of_one)) % each, tokens.weights[:, :top_of_one])
    return {
        "drawn": measure(world.rank, world.size, layer, tokens, call),
        "one rank": measure(world.rank, world.size, layer, few, call),
    }


def list_formula(tokens: Tokens, layer: Layer, ranks: int) -> list[dict[str, int]]:
    """Return for each rank the bytes of its dispatch and its combine, and its pairs, from the routing alone."""
    table = count_leaving(tokens.chosen, layer.experts, ranks)
    row_bytes, rows = layer.width * NUMBER_BYTES, []
    for rank in range(ranks):
        sent, arrived = int(table[rank].sum() - table[rank, rank]), int(table[:, rank].sum() - table[rank, rank])
        rows.append({"dispatch": sent * row_bytes, "combine": arrived * row_bytes, "pairs": int(table[:, rank].sum())})
    return rows
