"""A slice of the small model: the heads, the part of each MLP and the rows of the vocabulary that one rank has.

All slices of a model compute each step together. A slice keeps the keys and values of its own heads, in pages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from sent_bytes import SentBytes
from small_llm import SmallModel, attention, normalise, rotate

HEADS, KV_HEADS = 8, 2
MAX_TOKENS = 1024
HELD_HEADS: dict[int, tuple[tuple[int, ...], ...]] = {
    1: ((0, 1),), 2: ((0,), (1,)), 4: ((0,), (0,), (1,), (1,)), 8: ((0,), (0,), (0,), (0,), (1,), (1,), (1,), (1,)),
}  # fmt: skip
"""The key-value heads that the query heads of each rank read, by the number of ranks."""
Choose = Callable[[torch.Tensor, int, Any], int]


def make_model() -> SmallModel:
    """Return the model of 8.7, with 8 query heads and 2 key-value heads, in float64: the same on every rank."""
    return SmallModel(heads=HEADS, kv_heads=KV_HEADS, head_dim=8, spread=0.3)


def choose_from_all(scores: torch.Tensor, first: int, group: Any) -> int:  # noqa: ARG001 (a choice knows its first token)
    """Return the token with the highest score, after every rank has received the scores of all ranks."""
    everyone = [torch.empty_like(scores) for _ in range(dist.get_world_size(group))]
    dist.all_gather(everyone, scores, group=group)
    return int(torch.cat(everyone).argmax())


class Slice:
    """One rank's slice of a model, and the cache of one request."""

    def __init__(
        self, model: SmallModel, rank: int, ranks: int, kv_heads: Sequence[int], choose: Choose, group: Any, page_size: int = 16
    ) -> None:
        """`kv_heads` are the heads whose cache this rank holds. `choose` returns the token over all ranks of `group`."""
        self.model, self.rank, self.ranks, self.choose, self.group = model, rank, ranks, choose, group
        dim, width = model.head_dim, HEADS // ranks * model.head_dim
        own_columns = [number for head in kv_heads for number in range(head * dim, (head + 1) * dim)]
        queries = slice(rank * width, (rank + 1) * width)
        hidden = slice(rank * model.hidden // ranks, (rank + 1) * model.hidden // ranks)
        self.rows = slice(rank * model.vocabulary // ranks, (rank + 1) * model.vocabulary // ranks)
        columns = {"query": queries, "key": own_columns, "value": own_columns, "gate": hidden, "up": hidden}
        lines = {"output": queries, "down": hidden}
        self.layers = [
            {name: weight[:, columns[name]] if name in columns else weight[lines[name]] if name in lines else weight
             for name, weight in layer.items()}
            for layer in model.layers
        ]  # fmt: skip
        pages = torch.arange(MAX_TOKENS // page_size).flip(0)  # the first tokens are in the last page
        self.slots = (pages[:, None] * page_size + torch.arange(page_size)).flatten()
        shape = MAX_TOKENS, len(kv_heads), dim
        self.keys = [torch.full(shape, torch.nan, dtype=model.dtype) for _ in model.layers]
        self.values = [keys.clone() for keys in self.keys]
        self.length = self.place = 0  # slots that are written, and the place of the next token in its text

    def cache_bytes(self) -> int:
        """Return the bytes of the keys and values that this rank holds."""
        return sum(held[self.slots[: self.length]].nbytes for held in [*self.keys, *self.values])

    def receive(self, length: int) -> None:
        """Record that the keys and values of `length` tokens were written into the slots."""
        self.length = self.place = length

    def step(self, tokens: Sequence[int]) -> int:
        """Compute these tokens of the request together with the other slices. Return the next token."""
        model, start, end = self.model, self.length, self.length + len(tokens)
        places = torch.arange(self.place, self.place + len(tokens))
        x = model.embedding[torch.tensor(tokens)]
        for number, layer in enumerate(self.layers):
            normed = normalise(x, layer["attention_norm"])
            query, key, value = (
                (normed @ layer[name]).view(len(tokens), -1, model.head_dim) for name in ("query", "key", "value")
            )
            keys, values = self.keys[number], self.values[number]
            keys[self.slots[start:end]], values[self.slots[start:end]] = rotate(key, places), value
            read = self.slots[:end]
            mixed = attention(rotate(query, places), keys[read], values[read], start).reshape(len(tokens), -1)
            x = x + self.add_up(mixed @ layer["output"])
            normed = normalise(x, layer["mlp_norm"])
            x = x + self.add_up((torch.nn.functional.silu(normed @ layer["gate"]) * (normed @ layer["up"])) @ layer["down"])
        self.length, self.place = end, self.place + len(tokens)
        scores = model.embedding[self.rows] @ normalise(x[-1], model.norm)
        return int(self.choose(scores, self.rows.start, self.group))

    def add_up(self, part: torch.Tensor) -> torch.Tensor:
        """Return the sum of this part over all slices."""
        dist.all_reduce(part, group=self.group)
        return part


def count_slices(ranks: int) -> list[int]:
    """Return the numbers of slices, of 1, 2, 4 and 8, for which there are enough ranks."""
    return [slices for slices in (1, 2, 4, 8) if slices <= ranks]


def serve(
    world: Any, prompt: Sequence[int], count: int, heads_of: Callable[[int, int, int], list[int]], choose: Choose
) -> list[dict[str, Any]]:
    """Answer the prompt with 1, 2, 4 and 8 slices, if there are as many ranks.

    Return a row of this rank for each: `tokens` of the answer, `calls` and `bytes` of the decode steps, and `cache_bytes`.
    """
    model, rows = make_model(), []
    for slices in count_slices(world.size):
        group = dist.new_group(list(range(slices)))
        if world.rank >= slices:
            continue
        heads = [int(head) for head in heads_of(world.rank, slices, KV_HEADS)]
        part = Slice(model, world.rank, slices, heads, choose, group)
        answer = [part.step(prompt)]
        with SentBytes() as sent:
            while len(answer) < count:
                answer.append(part.step(answer[-1:]))
        rows.append(
            {"slices": slices, "tokens": answer, "calls": sent.calls, "bytes": sent.bytes, "cache_bytes": part.cache_bytes()}
        )
    return rows


def serve_with_your_choice(world: Any, prompt: list[int], count: int) -> list[dict[str, Any]]:
    """Answer the prompt with the learner's my_choice.py. Return the row of this rank."""
    import my_choice

    torch.set_num_threads(1)
    return serve(world, prompt, count, lambda rank, ranks, _heads: HELD_HEADS[ranks][rank], my_choice.choose)
