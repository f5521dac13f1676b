"""A small model whose keys and values are in pages: any number of requests in one forward pass, each with its own table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import small_llm
import torch

STALE = 9.0  # numbers in a page before it is written, as in a used cache
PagedAttention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, list[int], int], torch.Tensor]
"""(query [T, heads, d] of the last T tokens, keys and values [pages, size, kv_heads, d], table, length) -> [T, heads, d]"""


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


def gather(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: Sequence[int], length: int) -> torch.Tensor:
    """Return attention over pages in the plain way: copy all pages of the request into one tensor first."""
    key, value = (pages[list(table)].flatten(0, 1)[:length] for pages in (keys, values))
    return small_llm.attention(query, key, value, length - len(query))


class PagedModel:
    """A small model and the pages of its cache: `keys` and `values`, for each layer [pages, size, kv_heads, d]."""

    def __init__(self, model: small_llm.SmallModel, pages: int, page_size: int, attend: PagedAttention = gather) -> None:
        """`attend` reads through a table."""
        self.model, self.page_size, self._attend = model, page_size, attend
        shape = pages, page_size, model.kv_heads, model.head_dim
        self.keys = [torch.full(shape, STALE, dtype=model.dtype) for _ in model.layers]
        self.values = [torch.full(shape, STALE, dtype=model.dtype) for _ in model.layers]

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page, in all layers."""
        for pages in self.keys + self.values:
            pages[target] = pages[source]

    def compute(self, rows: Sequence[Row]) -> torch.Tensor:
        """Return the scores [requests, vocabulary] after the last new token of each request."""
        tokens = torch.tensor([token for row in rows for token in row.tokens])
        slots = torch.tensor([slot for row in rows for slot in row.slots])
        places = torch.cat([torch.arange(row.length - len(row.tokens), row.length) for row in rows])
        ends = torch.tensor([len(row.tokens) for row in rows]).cumsum(0).tolist()

        def attend(layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
            self.keys[layer].flatten(0, 1)[slots] = key
            self.values[layer].flatten(0, 1)[slots] = value
            return torch.cat(
                [
                    self._attend(
                        query[end - len(row.tokens) : end], self.keys[layer], self.values[layer], list(row.table), row.length
                    )
                    for row, end in zip(rows, ends, strict=True)
                ]
            )

        return self.model.forward(tokens, places, attend, rows=[end - 1 for end in ends])
