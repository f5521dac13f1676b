"""Your part of 8.2: attention that reads its keys and values through a table of pages.

You will learn    why the pages of a request can be anywhere, and why they need not be collected first
You will produce  attention over pages, exact to the last bits, whose tensors have the size of one page
Try it            gpucourse try 8.2
Your part         the body of `attend`; keep its name and parameters
Reading           modules/08-inference-engines/lesson-3-pages.md, "Attention through a table"
"""

from __future__ import annotations

import torch


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, table: list[int], length: int) -> torch.Tensor:
    """Return attention of the last T of `length` tokens to all tokens up to themselves, as [T, heads, d].

    q: [T, heads, d]. keys, values: the cache, [pages, size, kv_heads, d]. table: this request's pages, in the order of its
    text: the token at place p is in page table[p // size]. Slots after the last token contain numbers of other requests.

    heads is a multiple of kv_heads: query head h belongs to kv head h // (heads // kv_heads). The scores are q · k / sqrt(d).

    No tensor that you create may grow with `length`: read one page at a time, and keep the sum so far. New tensors belong on
    the device of q, in its type.
    """
    raise NotImplementedError("attend: what must you keep of the pages that you have read, so that you can add the next one?")
