"""The model of the engine in paged_engine.py: keys and values are in pages, and all requests of a step are one forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from paged_engine import PagePool, Step

STALE = 9.0  # numbers in a page before it is written, as in a used cache
PagedAttention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, list[int], int], torch.Tensor]
"""(query [T, heads, d] of the last T tokens, keys and values [pages, size, kv_heads, d], table, length) -> [T, heads, d]"""
Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""Keep the keys and values of a layer's new tokens, and return what the queries read:
(layer, query [T, heads, d], key [T, kv_heads, d], value [T, kv_heads, d]) -> [T, heads, d]."""


class Decoder(Protocol):
    """A model whose attention the caller supplies: small_llm.py of module 8, or HubModel."""

    layers: Sequence[Any]
    kv_heads: int
    head_dim: int
    dtype: torch.dtype

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, attend: Attend, *, rows: Sequence[int]) -> torch.Tensor:
        """Return the scores [rows, vocabulary] of the tokens after `rows`. `places` count the tokens of each request from 0."""


class HubModel:
    """A causal language model of transformers as a Decoder: Llama, GPT-2, OPT and others without sliding windows or latent
    attention."""

    def __init__(self, model: Any) -> None:
        from transformers import AttentionInterface

        config = model.config
        self.model, self.layers, self.dtype = model, range(config.num_hidden_layers), model.dtype
        self.kv_heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        self.head_dim = config.hidden_size // config.num_attention_heads
        self._read: Attend
        AttentionInterface.register("pages", self._attend)
        model.set_attn_implementation("pages")

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, attend: Attend, *, rows: Sequence[int]) -> torch.Tensor:
        """Return the scores [rows, vocabulary] of the tokens after `rows`."""
        self._read, ends = attend, torch.tensor(rows, device=tokens.device)
        with torch.inference_mode():
            return self.model(tokens[None], position_ids=places[None], use_cache=False, logits_to_keep=ends).logits[0].float()

    def _attend(
        self, module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, _mask: object, *,
        scaling: float, **_options: object,
    ) -> tuple[torch.Tensor, None]:  # fmt: skip
        query = query * (scaling * self.head_dim**0.5)  # OPT scales its queries before
        query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
        return self._read(module.layer_idx, query, key, value)[None], None


@dataclass(frozen=True)
class Row:
    """The new tokens of a request in a step, and the slots for their keys and values.

    Slot s is place s % size of page s // size. `table` has the request's pages, in the order of its text. `length` counts its
    tokens, the new ones included.
    """

    tokens: Sequence[int]
    slots: Sequence[int]
    table: Sequence[int]
    length: int


def make_row(text: Sequence[int], past: int, end: int, table: Sequence[int], size: int) -> Row:
    """Return the row of the tokens from place `past` to `end` - 1 of a text, in pages of `size` tokens."""
    slots = [table[place // size] * size + place % size for place in range(past, end)]
    return Row(text[past:end], slots, table, end)


def gather(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: Sequence[int], length: int) -> torch.Tensor:
    """Return attention over pages in the plain way: copy all pages of the request into one tensor first."""
    key, value = (pages[list(table)].flatten(0, 1)[:length].transpose(0, 1) for pages in (keys, values))
    places = torch.arange(length, device=query.device)
    read = torch.nn.functional.scaled_dot_product_attention(
        query.transpose(0, 1), key, value, attn_mask=places <= places[-len(query) :, None], enable_gqa=True
    )
    return read.transpose(0, 1)


class PagedModel:
    """A model and the pages of its cache: `keys` and `values`, for each layer [pages, size, kv_heads, d]."""

    def __init__(
        self, model: Decoder, pages: int, page_size: int, attend: PagedAttention | None = None, device: str = "cpu"
    ) -> None:
        """`attend` reads keys and values through a table of pages. Without it, a request's pages are copied into one tensor
        first."""
        self.model, self.page_size, self._attend, self._device = model, page_size, attend, device
        shape = pages, page_size, model.kv_heads, model.head_dim
        self.keys, self.values = (
            [torch.full(shape, STALE, dtype=model.dtype, device=device) for _ in model.layers] for _ in range(2)
        )

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page, in all layers."""
        for pages in self.keys + self.values:
            pages[target] = pages[source]

    def compute(self, rows: Sequence[Row]) -> torch.Tensor:
        """Return the scores [requests, vocabulary] after the last new token of each request."""
        tokens = self._place([token for row in rows for token in row.tokens])
        slots = self._place([slot for row in rows for slot in row.slots])
        places = self._place([place for row in rows for place in range(row.length - len(row.tokens), row.length)])
        ends = torch.tensor([len(row.tokens) for row in rows]).cumsum(0).tolist()
        joint = [number for number, row in enumerate(rows) if len(row.tokens) == 1 and not self._attend]
        alone = sorted({*range(len(rows))}.difference(joint))
        width = max((len(rows[number].table) for number in joint), default=0)
        tables = self._place([[*rows[number].table] + [0] * (width - len(rows[number].table)) for number in joint])
        lengths = self._place([rows[number].length for number in joint])
        mask = torch.arange(width * self.page_size, device=self._device) < lengths[:, None]
        firsts = self._place([ends[number] - 1 for number in joint])

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            keys, values, read = self.keys[layer], self.values[layer], torch.empty_like(query)
            keys.flatten(0, 1)[slots] = key
            values.flatten(0, 1)[slots] = value
            for number in alone:
                part, row = slice(ends[number] - len(rows[number].tokens), ends[number]), rows[number]
                read[part] = (self._attend or gather)(query[part], keys, values, list(row.table), row.length)
            if joint:
                pages = (cache[tables].flatten(1, 2).transpose(1, 2) for cache in (keys, values))
                read[firsts] = torch.nn.functional.scaled_dot_product_attention(
                    query[firsts][:, :, None], *pages, attn_mask=mask[:, None, None], enable_gqa=True
                )[:, :, 0]
            return read

        return self.model.forward(tokens, places, attend, rows=[end - 1 for end in ends])

    def _place(self, numbers: Sequence[Any]) -> torch.Tensor:
        return torch.tensor(numbers, dtype=torch.long, device=self._device)


class Runner:
    """Compute the steps of an engine. `texts` has the tokens of each request: its prompt, and its answer so far."""

    def __init__(self, paged: PagedModel, pool: PagePool, texts: dict[str, list[int]]) -> None:
        self.paged, self.pool, self.texts = paged, pool, texts

    def compute(self, step: Step, choose: Callable[[str, torch.Tensor], int]) -> dict[str, int]:
        """Compute a step, and append the next token of each request whose whole text is computed. Return these tokens by name.

        `choose` returns the next token of a request, from its name and the scores [vocabulary].
        """
        ends = {name: step.past[name] + tokens for name, tokens in step.plan.items()}
        rows = [
            make_row(self.texts[name], step.past[name], end, self.pool.table(name), self.paged.page_size)
            for name, end in ends.items()
        ]
        new = {
            name: choose(name, scores)
            for name, scores in zip(ends, self.paged.compute(rows), strict=True)
            if ends[name] == len(self.texts[name])
        }
        for name, token in new.items():
            self.texts[name].append(token)
        return new
