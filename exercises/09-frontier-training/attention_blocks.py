"""Attention over a block of keys for 9.3: its result with the logsumexp, its gradients, and messages in a ring.

Also attention over the whole sequence, to compare with.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.distributed as dist


class Shape(NamedTuple):
    """The sizes of an attention. Each head of keys and values is shared by `heads / kv_heads` query heads."""

    length: int
    heads: int
    kv_heads: int
    d: int


def make_inputs(shape: Shape, size: float = 1.0, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Return q, k, v and the gradient of the output of a whole sequence, [heads, length, d]: the same on every rank.

    Scores are about `size` times those of random numbers of size 1.
    """
    source = torch.Generator().manual_seed(3)
    counts = shape.heads, shape.kv_heads, shape.kv_heads, shape.heads
    q, *others = (torch.randn(count, shape.length, shape.d, generator=source, dtype=torch.float64) for count in counts)
    return [tensor.to(dtype) for tensor in (size * q, *others)]


def attend_whole(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return the attention of a whole sequence [heads, length, d], by PyTorch's own function."""
    groups = len(q) // len(k)
    k, v = (tensor.repeat_interleave(groups, 0) for tensor in (k, v))
    return torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]


def score(q: torch.Tensor, k: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor, causal: bool) -> torch.Tensor:
    """Return the scores [heads, queries, keys] of a block; -inf for a key that comes after its query."""
    scores = q @ k.repeat_interleave(len(q) // len(k), 0).transpose(-1, -2) / math.sqrt(q.shape[-1])
    later = k_positions[None, :] > q_positions[:, None]
    return scores.masked_fill(later, -math.inf) if causal else scores


def attend_block(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the attention of queries [heads, queries, d] over these keys alone, and the logsumexp [heads, queries, 1] of their
    scores. A query that sees none of these keys has the result 0 and the logsumexp -inf.
    """
    scores = score(q, k, q_positions, k_positions, causal)
    lse = scores.logsumexp(-1, keepdim=True)
    weights = (scores - lse.masked_fill(lse == -math.inf, 0.0)).exp()
    return weights @ v.repeat_interleave(len(q) // len(v), 0), lse


def block_gradients(
    gradient: torch.Tensor, saved: Sequence[torch.Tensor], q_positions: torch.Tensor, k_positions: torch.Tensor, causal: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the contributions of one block of keys to the gradients of q, k and v.

    `gradient` is the gradient of the whole output. `saved` is q, k, v, out and lse: k and v of the block, out and lse over all
    keys.
    """
    q, k, v, out, lse = saved
    groups = len(q) // len(k)
    weights = (score(q, k, q_positions, k_positions, causal) - lse).exp()  # their shares of the whole softmax
    wide = v.repeat_interleave(groups, 0)
    of_scores = weights * (gradient @ wide.transpose(-1, -2) - (gradient * out).sum(-1, keepdim=True)) / math.sqrt(q.shape[-1])
    of_k, of_v = of_scores.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ gradient
    of_k, of_v = (tensor.unflatten(0, (-1, groups)).sum(1) for tensor in (of_k, of_v))
    return of_scores @ k.repeat_interleave(groups, 0), of_k, of_v


@dataclass
class Messages:
    """The messages of one rank: their bytes, and how many tensors that arrived were alive at the same time."""

    rank: int
    ranks: int
    bytes: int = 0
    count: int = 0
    arrived: list[weakref.ref[torch.Tensor]] = field(default_factory=list)

    def add(self, tensors: Sequence[torch.Tensor], times: int = 1) -> None:
        """Count tensors that are sent to `times` other ranks."""
        self.bytes += times * sum(tensor.nbytes for tensor in tensors)
        self.count += times * len(tensors)

    def send_on(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Send tensors to the next rank of the ring, and return those of the previous rank, which have the same shapes."""
        tensors = [tensor.detach().contiguous() for tensor in tensors]
        received = [torch.empty_like(tensor) for tensor in tensors]
        following, previous = (self.rank + 1) % self.ranks, (self.rank - 1) % self.ranks
        works = [dist.isend(tensor, following, tag=tag) for tag, tensor in enumerate(tensors)]
        works += [dist.irecv(tensor, previous, tag=tag) for tag, tensor in enumerate(received)]
        for work in works:
            if work is not None:
                work.wait()
        self.add(tensors)
        self.arrived += [weakref.ref(tensor) for tensor in received]
        return received

    def count_alive(self) -> int:
        """Return how many of the tensors that arrived are still in use."""
        self.arrived = [reference for reference in self.arrived if reference() is not None]
        return len(self.arrived)


def cut_contiguous(length: int, ranks: int, rank: int) -> torch.Tensor:
    """Return the positions of one rank: a single piece of the sequence."""
    return torch.arange(length).chunk(ranks)[rank]


def cut_striped(length: int, ranks: int, rank: int) -> torch.Tensor:
    """Return the positions of one rank: those that leave the remainder `rank` if divided by `ranks`."""
    return torch.arange(rank, length, ranks)


def count_pairs(positions: torch.Tensor, length: int, causal: bool) -> int:
    """Return the number of pairs of a query at these positions and a key that this query may see."""
    return int((positions + 1).sum()) if causal else len(positions) * length


def gather_all(
    messages: Messages, inputs: Sequence[torch.Tensor], positions: list[torch.Tensor], causal: bool
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return output and gradients of one rank's tokens, if every rank gets all keys and values, as in Llama 3.

    `inputs` are q, k, v and the gradient of the output, of this rank's tokens. The gradients of keys and values are summed over
    all ranks, and each rank keeps those of its own tokens.
    """
    q, *local, gradient = inputs
    everyone = []
    for tensor in local:
        received = [torch.empty_like(tensor) for _ in range(messages.ranks)]
        dist.all_gather(received, tensor.contiguous())
        everyone.append(torch.cat(received, 1))
    messages.add(local, messages.ranks - 1)
    leaves = [tensor.clone().requires_grad_() for tensor in (q, *everyone)]
    out, _ = attend_block(*leaves, positions[messages.rank], torch.cat(positions), causal)
    of_q, *of_keys = torch.autograd.grad(out, leaves, gradient)
    gradients = [of_q]
    first = sum(len(part) for part in positions[: messages.rank])
    for tensor in of_keys:
        dist.all_reduce(tensor)
        gradients.append(tensor[:, first : first + len(positions[messages.rank])])
    return out.detach(), gradients
