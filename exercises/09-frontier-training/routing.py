"""Experts and their tokens in one process: a layer in float64, drawn choices, capacity, and a limit of nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

ROW_BYTES_OF_V3 = 7168  # a row of DeepSeek-V3 in 8 bits
V3_EXPERTS, V3_TOP, V3_NODES = 256, 8, 8


@dataclass(frozen=True)
class Tokens:
    """Tokens of all ranks: `x` (tokens, width), the experts that each has `chosen` and their `weights`, both (tokens, top)."""

    x: torch.Tensor
    chosen: torch.Tensor
    weights: torch.Tensor


class Layer:
    """The weights of all experts, the same on every rank, in float64."""

    def __init__(self, experts: int, width: int) -> None:
        source = torch.Generator().manual_seed(1)
        self.experts, self.width = experts, width
        self.up = torch.randn(experts, width, 2 * width, generator=source, dtype=torch.float64) / width**0.5
        self.down = torch.randn(experts, 2 * width, width, generator=source, dtype=torch.float64) / (2 * width) ** 0.5


def apply_expert(rows: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    """Return the output of one expert for rows (any, width)."""
    return torch.nn.functional.silu(rows @ up) @ down


def draw_tokens(count: int, layer: Layer, top: int, skew: float) -> Tokens:
    """Return tokens with drawn experts and weights. With a higher `skew`, experts with low numbers are chosen more often."""
    source = torch.Generator().manual_seed(7)
    x = torch.randn(count, layer.width, generator=source, dtype=torch.float64)
    favour = torch.linspace(skew, 0, layer.experts, dtype=torch.float64)
    chance = torch.rand(count, layer.experts, generator=source, dtype=torch.float64).clamp(1e-9, 1 - 1e-9)
    chosen = (favour - torch.log(-torch.log(chance))).topk(top, -1).indices
    shares = torch.rand(count, top, generator=source, dtype=torch.float64) + 0.1
    return Tokens(x, chosen, shares / shares.sum(-1, keepdim=True))


def compute_dense(
    x: torch.Tensor, weights: torch.Tensor, chosen: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    """Return the output of the layer, with every expert computed for every token."""
    gates = torch.zeros(len(x), len(up), dtype=x.dtype).scatter(1, chosen, weights)
    return sum((gates[:, e : e + 1] * apply_expert(x, up[e], down[e]) for e in range(len(up))), torch.zeros_like(x))


def count_leaving(chosen: torch.Tensor, experts: int, ranks: int) -> torch.Tensor:
    """Return how many pairs rank r has for experts of rank s (ranks, ranks). `chosen` has the tokens of all ranks in order."""
    homes = torch.arange(len(chosen)) // (len(chosen) // ranks)
    owners = chosen // (experts // ranks)
    places = homes[:, None] * ranks + owners
    return torch.bincount(places.flatten(), minlength=ranks * ranks).view(ranks, ranks)


def keep_within(tokens: Tokens, experts: int, room: int) -> torch.Tensor:
    """Return for each pair whether its expert has room (tokens, top). An expert accepts the first `room` pairs that arrive."""
    experts_of_pairs = tokens.chosen.flatten()
    arrival = torch.arange(len(experts_of_pairs))
    order = (experts_of_pairs * len(arrival) + arrival).argsort()
    counts = torch.bincount(experts_of_pairs, minlength=experts)
    begins = counts.cumsum(0) - counts
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order)) - begins[experts_of_pairs[order]]
    return (places < room).view_as(tokens.chosen)


def list_capacities(tokens: Tokens, layer: Layer, ranks: int, factors: list[float]) -> list[dict[str, Any]]:
    """Return a row for each capacity factor: pairs dropped, bytes sent, empty places, and the error of the output.

    Each rank fills and sends a box for each expert. A box has room for the mean number of pairs, times the factor.
    """
    pairs = tokens.chosen.numel()
    whole = compute_dense(tokens.x, tokens.weights, tokens.chosen, layer.up, layer.down)
    rows = []
    for factor in factors:
        room = math.ceil(factor * pairs / ranks / layer.experts)
        shares = [
            Tokens(*parts) for parts in zip(*(t.chunk(ranks) for t in (tokens.x, tokens.chosen, tokens.weights)), strict=True)
        ]
        kept = torch.cat([keep_within(share, layer.experts, room) for share in shares])
        output = compute_dense(tokens.x, tokens.weights * kept, tokens.chosen, layer.up, layer.down)
        dropped = pairs - int(kept.sum())
        boxes = ranks * layer.experts * room
        rows.append(
            {
                "factor": factor, "room": room, "dropped": dropped, "dropped_percent": 100 * dropped / pairs,
                "dropped_weight_percent": 100 * float((tokens.weights * ~kept).sum() / tokens.weights.sum()),
                "sent_bytes": (layer.experts - layer.experts // ranks) * room * layer.width * 8,
                "empty_percent": 100 * (boxes - int(kept.sum())) / boxes,
                "output_off": float((output - whole).norm() / whole.norm()),
            }
        )  # fmt: skip
    return rows


def list_limits(limits: tuple[int, ...], tokens: int = 2048) -> list[dict[str, Any]]:
    """Return a row for each limit of nodes: how many other nodes a token reaches, and the kB that it sends to them.

    The numbers follow DeepSeek-V3: 8 of 256 experts on 8 nodes, rows of 7,168 bytes. Scores are drawn. A node counts by
    the sum of its best top / limit scores, and a token chooses among the experts of its best nodes.
    """
    scores = torch.rand(tokens, V3_EXPERTS, generator=torch.Generator().manual_seed(3))
    homes = torch.arange(tokens) % V3_NODES
    rows = []
    for limit in limits:
        by_node = scores.view(tokens, V3_NODES, -1)
        best = by_node.topk(max(1, V3_TOP // limit), -1).values.sum(-1).topk(limit, -1).indices
        allowed = torch.zeros(tokens, V3_NODES, dtype=torch.bool).scatter(1, best, True)
        chosen = by_node.masked_fill(~allowed[..., None], -1.0).view(tokens, -1).topk(V3_TOP, -1).indices
        nodes = chosen // (V3_EXPERTS // V3_NODES)
        reached = torch.zeros(tokens, V3_NODES).scatter(1, nodes, 1.0).scatter(1, homes[:, None], 0.0)
        away = float((nodes != homes[:, None]).sum()) / tokens
        nodes_a_token = float(reached.sum()) / tokens
        rows.append(
            {
                "max_nodes": limit, "nodes_a_token": nodes_a_token, "kb_a_token": nodes_a_token * ROW_BYTES_OF_V3 / 1e3,
                "kb_a_token_by_expert": away * ROW_BYTES_OF_V3 / 1e3,
            }
        )  # fmt: skip
    return rows
