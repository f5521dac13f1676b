"""Count what a decoder computes, reads and keeps, while it computes one step.

A decoder has the shape of a `cards.Card`. On the device "meta", tensors have shapes and no numbers, so models of any size are
counted without their memory. The counter sees every matrix product, and knows weights and cache by their storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from cards import Card
from small_llm import normalise, rotate
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Counts:
    """The costs of one step: operations, two for each multiply-add, and bytes.

    `cache_held`: bytes of the caches after the step.
    """

    operations: int
    weights_read: int
    cache_read: int
    cache_held: int


class Kinds:
    """The kinds of storages: weights, cache, other. All views of a tensor share its storage, even on the device "meta"."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[str, torch.Tensor]] = {}  # with the tensor, so that no other storage gets its address

    def mark(self, kind: str, *tensors: torch.Tensor) -> None:
        """Record the kind of these tensors' storages."""
        self._kinds.update((_address(tensor), (kind, tensor)) for tensor in tensors)

    def find(self, tensor: torch.Tensor) -> str:
        """Return the kind of a tensor's storage."""
        return self._kinds.get(_address(tensor), ("other", tensor))[0]

    def forget(self, kind: str) -> None:
        """Forget the storages of one kind."""
        self._kinds = {place: pair for place, pair in self._kinds.items() if pair[0] != kind}


def _address(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001  # data_ptr() is 0 on the device "meta"


class ProductReads(TorchDispatchMode):
    """Add up the bytes that matrix products read, by kind of storage."""

    def __init__(self, kinds: Kinds) -> None:
        super().__init__()
        self.kinds, self.bytes = kinds, {"weights": 0, "cache": 0, "other": 0}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call the operation, and count the two matrices of a product."""
        if func.overloadpacket.__name__ in ("mm", "bmm"):
            for matrix in args[:2]:
                size = min(matrix.numel() * matrix.element_size(), matrix.untyped_storage().nbytes())  # without repetitions
                self.bytes[self.kinds.find(matrix)] += size
        return func(*args, **(kwargs or {}))


class Cache:
    """The cache of one request: in each layer keys and values, or latent vectors and the keys of positions."""

    def __init__(self, card: Card, tokens: int, device: str, dtype: torch.dtype) -> None:
        """Fill the cache with random numbers for `tokens` tokens."""
        heads = [(1, card.latent), (1, card.rope_dim)] if card.latent else [(card.kv_heads, card.head_dim)] * 2
        self.windows = [card.window] * card.windowed_layers + [0] * (card.layers - card.windowed_layers)
        self.layers = [
            tuple(self._trim(torch.randn(tokens, *shape, device=device, dtype=dtype), window) for shape in heads)
            for window in self.windows
        ]

    @staticmethod
    def _trim(tensor: torch.Tensor, window: int) -> torch.Tensor:
        return tensor[-window:].clone() if window and len(tensor) > window else tensor

    def append(self, layer: int, *new: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Add the new tokens of a layer. Return the tensors of all tokens that at least one of them looks at."""
        window = self.windows[layer]
        old = [tensor[1:] if window and len(tensor) == window else tensor for tensor in self.layers[layer]]
        both = tuple(torch.cat(pair) for pair in zip(old, new, strict=True))
        self.layers[layer] = tuple(self._trim(tensor, window) for tensor in both)
        return both

    def bytes(self) -> int:
        """Return the bytes of all layers."""
        return sum(tensor.numel() * tensor.element_size() for layer in self.layers for tensor in layer)


class Decoder:
    """A language model of a card's shape, with grouped heads, windows and experts. It has random weights.

    `card.latent` must be 0; `attend_latent` computes latent attention.
    """

    def __init__(self, card: Card, *, device: str = "cpu", dtype: torch.dtype = torch.float32, seed: int = 0) -> None:
        self.card, self.device, self.dtype = card, device, dtype
        self.kinds = Kinds()
        torch.manual_seed(seed)
        queries, keys, copies = card.heads * card.head_dim, card.kv_heads * card.head_dim, card.experts or 1
        self.embedding = self._draw(card.vocabulary, card.width)
        self.head = self._draw(card.width, card.vocabulary)
        self.layers = [
            {
                "query": self._draw(card.width, queries),
                "key": self._draw(card.width, keys),
                "value": self._draw(card.width, keys),
                "output": self._draw(queries, card.width),
                "router": self._draw(card.width, card.experts),
                "gate": self._draw(copies, card.width, card.hidden),
                "up": self._draw(copies, card.width, card.hidden),
                "down": self._draw(copies, card.hidden, card.width),
            }
            for _ in range(card.layers)
        ]

    def _draw(self, *shape: int) -> torch.Tensor:
        tensor = torch.randn(*shape, device=self.device, dtype=self.dtype) * 0.1
        self.kinds.mark("weights", tensor)
        return tensor

    def step(self, rows: Sequence[tuple[int, int]], attend: Attend) -> torch.Tensor:
        """Compute the new tokens of all rows (past, new) at once. Return the scores after the last token of each."""
        with torch.device(self.device):
            return self._step(rows, attend)

    def _step(self, rows: Sequence[tuple[int, int]], attend: Attend) -> torch.Tensor:
        total = sum(new for _, new in rows)
        places = torch.cat([torch.arange(past, past + new) for past, new in rows])
        x = self.embedding[places % self.card.vocabulary]
        one = torch.ones(self.card.width, dtype=self.dtype)
        for number, layer in enumerate(self.layers):
            normed = normalise(x, one)
            shape = (total, -1, self.card.head_dim)
            query, key, value = ((normed @ layer[name]).view(shape) for name in ("query", "key", "value"))
            mixed = attend(number, rotate(query, places), rotate(key, places), value)
            x = x + mixed.reshape(total, -1) @ layer["output"]
            x = x + self._feed_forward(layer, normalise(x, one))
        last = torch.tensor([new for _, new in rows]).cumsum(0) - 1
        return normalise(x[last], one) @ self.head

    def _feed_forward(self, layer: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        if not self.card.experts:
            return _expand(x, *(layer[name][0] for name in ("gate", "up", "down")))
        scores = (x @ layer["router"]).softmax(-1)
        if self.device == "meta":  # it has no scores to choose by
            scores = torch.rand(scores.shape, device="cpu")
        shares, chosen = scores.topk(self.card.per_token, -1)
        order = chosen.flatten().argsort(stable=True)  # the rows of each expert, one expert after the other
        tokens = (order // self.card.per_token).to(self.device)
        pieces = x[tokens].split(chosen.flatten().bincount(minlength=self.card.experts).tolist())
        results = [
            _expand(piece, *(layer[name][expert] for name in ("gate", "up", "down")))
            for expert, piece in enumerate(pieces)
            if len(piece)
        ]
        weighted = shares.flatten()[order].to(self.device, self.dtype)[:, None] * torch.cat(results)
        return torch.zeros_like(x).index_add_(0, tokens, weighted)

    def attend(self, caches: Sequence[Cache], rows: Sequence[tuple[int, int]]) -> Attend:
        """Return attention for `step` that appends to the caches of the rows, and reads them without copying grouped heads."""

        def attend_all(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            sizes = [new for _, new in rows]
            results = []
            for cache, *tensors in zip(caches, *(tensor.split(sizes) for tensor in (query, key, value)), strict=True):
                both = cache.append(layer, tensors[1], tensors[2])
                self.kinds.mark("cache", *both)
                results.append(attend_grouped(tensors[0], *both, window=cache.windows[layer]))
            return torch.cat(results)

        return attend_all


def _expand(x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    return (torch.nn.functional.silu(x @ gate) * (x @ up)) @ down


def attend_grouped(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, window: int = 0) -> torch.Tensor:
    """Return attention [T, heads, d] of the last T of N places: query [T, heads, d], key and value [N, kv_heads, d].

    The queries that share a key are the rows of one product, so no key is copied.
    """
    (count, heads, dim), (length, groups, _) = query.shape, key.shape
    together = query.view(count, groups, heads // groups, dim).transpose(0, 1).reshape(groups, -1, dim)
    scores = torch.bmm(together, key.permute(1, 2, 0)) / dim**0.5
    distance = torch.arange(length - count, length, device=query.device)[:, None] - torch.arange(length, device=query.device)
    hidden = (distance < 0) | (distance >= (window or length))
    scores = scores.view(groups, count, -1, length).masked_fill(hidden[None, :, None], -torch.inf)
    mixed = torch.bmm(scores.softmax(-1).view(groups, -1, length), value.transpose(0, 1))
    return mixed.view(groups, count, -1, dim).transpose(0, 1).reshape(count, heads, dim)


def count_step(decoder: Decoder, rows: Sequence[tuple[int, int]]) -> Counts:
    """Return the costs of one step of the decoder. `rows` has, for each request, its past tokens and its new ones."""
    caches = [Cache(decoder.card, past, decoder.device, decoder.dtype) for past, _ in rows]
    operations, reads = _count(decoder.kinds, lambda: decoder.step(rows, decoder.attend(caches, rows)))
    decoder.kinds.forget("cache")
    return Counts(operations, reads["weights"], reads["cache"], sum(cache.bytes() for cache in caches))


def count_products(decoder: Decoder, tokens: int) -> Counts:
    """Return the costs of a step of `tokens` tokens without attention and its cache, but with the scores after one token."""
    operations, reads = _count(decoder.kinds, lambda: decoder.step([(0, tokens)], lambda _layer, query, _key, _value: query))
    return Counts(operations, reads["weights"], 0, 0)


def _count(kinds: Kinds, call: Callable[[], object]) -> tuple[int, dict[str, int]]:
    counter, reads = FlopCounterMode(display=False), ProductReads(kinds)
    with torch.no_grad(), counter, reads:
        call()
    return counter.get_total_flops(), reads.bytes


def attend_latent(
    form: str, *, heads: int, dim: int, rope_dim: int, latent: int, length: int, device: str = "cpu", seed: int = 0
) -> tuple[torch.Tensor, Counts]:
    """Return multi-head latent attention [heads, dim] of one new token, and its costs, in one of two forms.

    "expanded" makes keys and values of all `length` tokens from their latent vectors. "absorbed" multiplies the query into the
    space of the latent vectors instead, and the mixture of latent vectors by the weights of the values (DeepSeek-AI 2024).
    """
    torch.manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, device=device, dtype=torch.float64) * 0.2

    latents, rope_keys, queries, rope_queries = (
        draw(length, latent),
        draw(length, rope_dim),
        draw(heads, dim),
        draw(heads, rope_dim),
    )
    to_keys, to_values = draw(heads, dim, latent), draw(heads, latent, dim)
    kinds = Kinds()
    kinds.mark("cache", latents, rope_keys)
    kinds.mark("weights", to_keys, to_values)
    results = []

    def compute() -> None:
        if form == "expanded":
            keys, values = latents @ to_keys.transpose(1, 2), latents @ to_values
            scores = (queries[:, None] @ keys.transpose(1, 2))[:, 0] + rope_queries @ rope_keys.T
        else:
            scores = (queries[:, None] @ to_keys)[:, 0] @ latents.T + rope_queries @ rope_keys.T
        weights = (scores / (dim + rope_dim) ** 0.5).softmax(-1)
        mixed = (weights[:, None] @ values) if form == "expanded" else (weights @ latents)[:, None] @ to_values
        results.append(mixed[:, 0])

    operations, reads = _count(kinds, compute)
    held = 8 * length * (latent + rope_dim)
    return results[0], Counts(operations, reads["weights"], reads["cache"], held)
