"""A layer of experts that is spread over ranks, and the placement of copies of busy experts."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from sent_bytes import SentBytes

WIDTH, HIDDEN, PER_TOKEN = 128, 48, 3


class Experts:
    """The weights of all experts and of the router, and the tokens of all ranks: the same on every rank, in float64."""

    def __init__(self, count: int, tokens: int) -> None:
        """`tokens` are the tokens of all ranks."""
        source = torch.Generator().manual_seed(9)

        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=source, dtype=torch.float64)

        self.count, self.router = count, draw(WIDTH, count)
        self.up, self.down = draw(count, WIDTH, HIDDEN), 0.1 * draw(count, HIDDEN, WIDTH)
        self.x = draw(tokens, WIDTH)
        gates, self.chosen = (self.x @ self.router).softmax(-1).topk(PER_TOKEN)
        self.gates = gates / gates.sum(-1, keepdim=True)

    def compute(self, expert: int, rows: torch.Tensor) -> torch.Tensor:
        """Return the output of one expert for these rows [any, width]."""
        return torch.relu(rows @ self.up[expert]) @ self.down[expert]

    def add_experts(self, experts: range) -> torch.Tensor:
        """Return the sum over some experts only, of weight times output, for all tokens."""
        result = torch.zeros_like(self.x)
        for expert in experts:
            weight = (self.gates * (self.chosen == expert)).sum(-1, keepdim=True)
            result += weight * self.compute(expert, self.x)
        return result

    def count_leaving(self, ranks: int) -> int:
        """Return how many pairs of token and expert have the expert on a different rank from the token."""
        token_ranks = torch.arange(len(self.x)) // (len(self.x) // ranks)
        return int((self.chosen // (self.count // ranks) != token_ranks[:, None]).sum())

    def count_leaving_rows(self, ranks: int) -> int:
        """Return how many rows leave their rank if a token sends one row to each rank that has any of its experts."""
        token_ranks = torch.arange(len(self.x)) // (len(self.x) // ranks)
        needs = torch.zeros(len(self.x), ranks, dtype=torch.bool).scatter_(1, self.chosen // (self.count // ranks), True)
        return int(needs.sum() - needs[torch.arange(len(self.x)), token_ranks].sum())

    def list_loads(self, ranks: int) -> list[int]:
        """Return how many pairs of token and expert each rank computes."""
        return torch.bincount(self.chosen.flatten() // (self.count // ranks), minlength=ranks).tolist()


def send_all_tokens(world: Any, layer: Experts) -> dict[str, Any]:
    """Send all tokens to all ranks, compute the experts of this rank for all of them, and add up the results of all ranks.

    Return `off`, the largest difference from one process that computes everything, and `bytes`, which all ranks send together.
    """
    each = layer.count // world.size
    share = layer.x.chunk(world.size)[world.rank].contiguous()
    with SentBytes(world.rank, world.size) as sent:
        everyone = [torch.empty_like(share) for _ in range(world.size)]
        dist.all_gather(everyone, share)
        result = layer.add_experts(range(world.rank * each, (world.rank + 1) * each))
        dist.all_reduce(result)
    right = layer.add_experts(range(layer.count))
    return {"off": float((result - right).abs().max()), "bytes": sent.bytes * world.size}


def send_with_yours(world: Any, experts: int, tokens: int) -> dict[str, Any]:
    """Compute the layer with the learner's my_experts.py. Return `off` and `bytes` of this rank."""
    import my_experts

    torch.set_num_threads(1)
    layer = Experts(experts, tokens)
    right = layer.add_experts(range(layer.count)).chunk(world.size)[world.rank]
    shares = [whole.chunk(world.size)[world.rank].clone() for whole in (layer.x, layer.chosen, layer.gates)]
    each = experts // world.size

    def compute(expert: int, rows: torch.Tensor) -> torch.Tensor:
        if expert // each != world.rank:
            raise ValueError(f"rank {world.rank} has no expert {expert}")
        return layer.compute(expert, rows)

    with SentBytes(world.rank, world.size) as sent:
        result = my_experts.forward(*shares, experts, compute, dist.group.WORLD)
    return {"off": float((result - right).abs().max()), "bytes": sent.bytes}


def draw_loads(experts: int) -> list[int]:
    """Return made-up loads of experts: the second busiest has half of the busiest's load, the third a third, and so on."""
    return [100 * experts // (1 + expert * 11 % experts) for expert in range(experts)]


def place_experts(loads: list[int], ranks: int, places: int) -> list[float]:
    """Return the load of each rank, if each has `places` places for experts and free places get copies of the busiest ones.

    Each further copy is one of the expert whose copies have the highest load. Then the copies are placed, the heaviest first,
    each on the rank with the least load that has a free place. DeepSeek's balancer for experts does the same, and also forms
    groups of nodes.
    """
    copies = [1] * len(loads)
    for _ in range(ranks * places - len(loads)):
        copies[max(range(len(loads)), key=lambda expert: (loads[expert] / copies[expert], -expert))] += 1
    shares = sorted(
        (loads[expert] / copies[expert] for expert in range(len(loads)) for _ in range(copies[expert])), reverse=True
    )
    weights, counts = [0.0] * ranks, [0] * ranks
    for share in sorted(shares, reverse=True):
        rank = min((rank for rank in range(ranks) if counts[rank] < places), key=lambda rank: (weights[rank], rank))
        weights[rank] += share
        counts[rank] += 1
    return weights
