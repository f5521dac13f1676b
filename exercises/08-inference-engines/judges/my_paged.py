"""Judge my_paged.py of 8.2: values against plain attention, on pages in any order with stale numbers, and tensor sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import page_trial
import paged_model
import torch

from gpucourse.judge import Part, Verdict, Way, plant_ways

WAYS = {
    "stale-read": Way(
        "place {length} has not been written yet: its page still holds what an earlier request left there, and your queries "
        "read it",
        (
            "is_visible = number * size + torch.arange(size, device=q.device) <= places[:, None]",
            "is_visible = number * size + torch.arange(size, device=q.device) < (places[:, None] // size + 1) * size",
        ),
    ),
    "not-causal": Way(
        "right with one new token, but wrong with {tokens}: each new token reads the places up to its own, not those of the "
        "tokens after it",
        ("<= places[:, None]", "<= torch.full_like(places, length - 1)[:, None]"),
    ),
    "not-itself": Way(
        "a token also reads its own place: the token at place {last} reads the places 0 to {last}",
        ("<= places[:, None]", "< places[:, None]"),
    ),
    "places-from-zero": Way(
        "the queries belong to the last of {length} tokens: the first query is at place {start}, not at place 0",
        ("torch.arange(length - count, length, device=q.device)", "torch.arange(count, device=q.device)"),
    ),
    "table-ignored": Way(
        "you read the pages in the order of the cache: page number n of a request is page table[n] of the cache",
        ("k, v = keys[page], values[page]", "k, v = keys[number], values[number]"),
    ),
    "heads-interleaved": Way(
        "right if every query head has its own keys, but wrong with {heads} query heads over {kv_heads}: neighbouring query "
        "heads share a kv head. Query head h belongs to kv head h // {group}, not to h % {kv_heads}",
        (
            "q = q.view(count, -1, group, dim)",
            "q = q.view(count, group, -1, dim).transpose(1, 2)",
        ),
    ),
    "pages-averaged": Way(
        "you compute a softmax for each page and add the results: the weights of all pages together must add up to 1",
        (
            "        total = total * shrink + weights.sum(-1)\n"
            '        out = out * shrink[..., None] + torch.einsum("tkgn,nkd->tkgd", weights, v)\n',
            "        total = total + 1\n"
            '        out = out + torch.einsum("tkgn,nkd->tkgd", scores.softmax(-1).nan_to_num(), v)\n',
        ),
    ),
    "out-not-rescaled": Way(
        "when a page raises the highest score, the values so far still have the weights of the old one: multiply them by "
        "exp(old - new)",
        ("out = out * shrink[..., None]", "out = out"),
    ),
    "sum-not-rescaled": Way(
        "when a page raises the highest score, you rescale the values so far, but not the sum of the weights",
        ("total = total * shrink", "total = total"),
    ),
    "scale-missing": Way("the scores are not divided by sqrt({dim})", (" * dim**-0.5", "")),
    "last-page-left-out": Way(
        "right when the last page is full. With a length of {length} and pages of {size} it is not full, and you leave it "
        "out: read it up to the last token",
        ("enumerate(table)", "enumerate(table[: length // size])"),
    ),
    "one-head-for-all": Way(
        "all query heads read kv head 0: there are {kv_heads}, each for {group} query heads",
        (
            "k, v = keys[page], values[page]",
            "k, v = keys[page][:, :1].expand_as(keys[page]), values[page][:, :1].expand_as(values[page])",
        ),
    ),
    "no-highest": Way(
        "scores of {peak:.0f} overflow: exp of them is infinite. Subtract the highest score so far before exp",
        ("new = torch.maximum(highest, scores.amax(-1))", "new = torch.zeros_like(highest)"),
    ),
    "gathered": Way(
        "right, but it makes a tensor of {numbers:,} numbers for {length} tokens, and {allowed:,} numbers are enough: it "
        "collects the pages first. Use each page where it is, then continue with the next",
        (
            "    for number, page in enumerate(table):\n        k, v = keys[page], values[page]\n",
            "    keys, values = keys[table].clone(), values[table].clone()\n"
            "    for number in range(len(table)):\n        k, v = keys[number], values[number]\n",
        ),
    ),
}


@dataclass(frozen=True)
class Shape:
    """One input. `peak` raises the scores of one key in the last page."""

    tokens: int
    length: int
    size: int
    heads: int = 4
    kv_heads: int = 2
    dim: int = 8
    peak: float = 0.0

    @property
    def name(self) -> str:
        """Describe the input in words."""
        peak = f", a score of {self.peak:.0f}" if self.peak else ""
        new = "the last token" if self.tokens == 1 else f"the last {self.tokens} tokens"
        return f"{new} of {self.length}, pages of {self.size}, {self.heads} heads over {self.kv_heads}{peak}"

    def make(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[int], int]:
        """Return the arguments of `attend`. Others' pages and the places after the last token contain stale numbers."""
        source = torch.Generator().manual_seed(self.length)
        need = -(-self.length // self.size)
        table = torch.randperm(need + 3, generator=source)[:need].tolist()
        caches = []
        for _ in range(2):
            cache = torch.full((need + 3, self.size, self.kv_heads, self.dim), paged_model.STALE, dtype=torch.float64)
            for place in range(self.length):
                numbers = torch.randn(self.kv_heads, self.dim, generator=source, dtype=torch.float64)
                cache[table[place // self.size], place % self.size] = numbers
            caches.append(cache)
        q = torch.randn(self.tokens, self.heads, self.dim, generator=source, dtype=torch.float64)
        if self.peak:
            place = self.length - self.tokens
            key, mean = (
                caches[0][table[place // self.size], place % self.size],
                q.view(self.tokens, self.kv_heads, -1, self.dim),
            )
            key.copy_(mean.mean((0, 2)))
            key *= self.peak * self.dim**0.5 / torch.einsum("tkgd,kd->tkg", mean, key).max()
        return q, caches[0], caches[1], table, self.length


SHAPES = (
    Shape(1, 1, 4),
    Shape(1, 8, 4),
    Shape(1, 8, 4, heads=2),
    Shape(1, 7, 4),
    Shape(3, 12, 4, heads=2),
    Shape(3, 11, 4),
    Shape(6, 6, 4),
    Shape(2, 9, 1, heads=6),
    Shape(5, 40, 16, heads=6, kv_heads=3),
    Shape(1, 33, 16, heads=4, kv_heads=1),
    Shape(2, 30, 8, peak=1000.0),
)
LONG = Shape(1, 512, 16)
TOLERANCE = 1e-9


def judge(part: Part) -> None:
    """Judge values in float64, then the largest tensor."""
    torch.set_num_threads(1)
    attend = part.function("attend")
    inputs = [shape.make() for shape in SHAPES]
    right = [paged_model.gather(*arguments) for arguments in inputs]
    results = [_attend(part, attend, shape, arguments) for shape, arguments in zip(SHAPES, inputs, strict=True)]
    wrong = [place for place, result in enumerate(results) if not _is_near(result, right[place])]
    if wrong:
        raise _name_cause(part, results, inputs, right, wrong[0])
    arguments = LONG.make()
    record = page_trial.LargestTensor(*arguments[:3])
    result = _attend(part, attend, LONG, arguments, record)
    if not _is_near(result, paged_model.gather(*arguments)):
        raise _name_cause(part, [result], [arguments], [paged_model.gather(*arguments)], 0, shapes=(LONG,))
    allowed = page_trial.count_allowed(LONG.tokens, LONG.heads, LONG.dim, LONG.size)
    if record.numbers > allowed:
        raise part.wrong("gathered", LONG.name, numbers=record.numbers, allowed=allowed, length=LONG.length)
    part.note(f"equal to plain attention in {len(SHAPES) + 1} inputs, up to {TOLERANCE:g}")
    part.note(f"the largest tensor for {LONG.length} tokens has {record.numbers:,} numbers")


def _attend(part: Part, attend: Callable[..., Any], shape: Shape, arguments: Any, record: Any = None) -> torch.Tensor:
    before = [tensor.clone() for tensor in arguments[:3]]
    with record or nullcontext():
        result = part.call(attend, *arguments[:3], list(arguments[3]), arguments[4], case=shape.name)
    expected = (shape.tokens, shape.heads, shape.dim)
    if not isinstance(result, torch.Tensor) or tuple(result.shape) != expected:
        kind = f"a tensor of {tuple(result.shape)}" if isinstance(result, torch.Tensor) else type(result).__name__
        raise Verdict("failed", "shape", f"it returned {kind}, and should return a tensor of {expected}", shape.name)
    if any(not torch.equal(now, then) for now, then in zip(arguments[:3], before, strict=True)):
        raise Verdict("failed", "writes", "it changed q or the cache, which other requests read", shape.name)
    return result


def _is_near(result: torch.Tensor, right: torch.Tensor) -> bool:
    return bool((result.double() - right).abs().max() <= TOLERANCE)  # false for NaN


def _is_same(result: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(result.double(), other.double(), rtol=1e-6, atol=1e-9, equal_nan=True)


def _name_cause(
    part: Part, results: list[torch.Tensor], inputs: list[Any], right: list[torch.Tensor], place: int,
    shapes: tuple[Shape, ...] = SHAPES,
) -> Verdict:  # fmt: skip
    shape = shapes[place]
    values = vars(shape) | {"group": shape.heads // shape.kv_heads, "start": shape.length - shape.tokens}
    values |= {"last": shape.length - 1}
    for way, module in plant_ways(WAYS, __file__):
        try:
            changed = [module.attend(*arguments) for arguments in inputs]
        except Exception:  # noqa: BLE001  # this change fails where the part does not
            continue
        if all(_is_same(result, other) for result, other in zip(results, changed, strict=True)):
            return part.wrong(way, shape.name, **values)
    off = float((results[place].double() - right[place]).abs().max())
    text = f"it is off by {off:.2g}, and the values are about 1" if off == off else "some of its numbers are NaN"
    return Verdict("failed", "other", text, shape.name)
