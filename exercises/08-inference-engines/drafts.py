"""Check guesses with a model, and guess in four ways: by pairs of bytes, a small model, fewer bits, and the text itself."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

import torch
from small_llm import ContiguousCache, SmallModel

Row = list[float]
Choose = Callable[[list[int], list[Row], list[Row], Callable[[], float]], list[int]]
"""Turn guesses, the rows of the draft and the rows of the model into the tokens that are certain: verify of my_accept.py."""


class Draft(Protocol):
    """A source of guesses for the next tokens of a text."""

    def guess(self, text: list[int], gamma: int, uniform: Callable[[], float], *, greedy: bool) -> tuple[list[int], list[Row]]:
        """Return at most `gamma` guesses, and the distribution that each was drawn from."""


class CutCache(ContiguousCache):
    """A cache that can forget its last tokens."""

    def cut(self, tokens: int) -> None:
        """Keep only the first `tokens` tokens."""
        self.keys = [None if key is None else key[:tokens] for key in self.keys]
        self.values = [None if value is None else value[:tokens] for value in self.values]


def predict(model: SmallModel, cache: CutCache, new: Sequence[int], *, greedy: bool) -> torch.Tensor:
    """Return the distribution after each new token, [new, vocabulary]; with `greedy`, the likeliest token has the
    probability 1."""
    start = len(cache)
    scores = model.forward(torch.tensor(new), torch.arange(start, start + len(new)), cache.attend).double()
    return torch.nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).double() if greedy else scores.softmax(-1)


def pick(row: Sequence[float], uniform: Callable[[], float]) -> int:
    """Return a token that is drawn from a distribution."""
    return random_index(torch.tensor(row).cumsum(0), uniform())


def random_index(sums: torch.Tensor, number: float) -> int:
    """Return the index of the cumulated weight whose part contains a number from 0 to below 1."""
    return min(int(torch.searchsorted(sums, number * float(sums[-1]), right=True)), len(sums) - 1)


class PairDraft:
    """Guesses by the frequencies of pairs of bytes in the text that the model learned from."""

    def __init__(self, text: torch.Tensor) -> None:
        counts = torch.full((256, 256), 0.01, dtype=torch.float64)
        counts.index_put_((text[:-1], text[1:]), torch.ones(1, dtype=torch.float64), accumulate=True)
        self.rows = counts / counts.sum(1, keepdim=True)

    def guess(self, text: list[int], gamma: int, uniform: Callable[[], float], *, greedy: bool) -> tuple[list[int], list[Row]]:
        """Return guesses that each follow from the byte before them."""
        guesses, rows, last = [], [], text[-1]
        for _ in range(gamma):
            row = _sharpen(self.rows[last]) if greedy else self.rows[last]
            rows.append(row.tolist())
            last = pick(rows[-1], uniform)
            guesses.append(last)
        return guesses, rows


@dataclass
class ModelDraft:
    """Guesses with a separate model and a separate cache."""

    model: SmallModel
    text: list[int] = field(default_factory=list)  # the tokens in the cache
    cache: CutCache | None = None

    def guess(self, text: list[int], gamma: int, uniform: Callable[[], float], *, greedy: bool) -> tuple[list[int], list[Row]]:
        """Return guesses that each follow from all tokens before them."""
        self.cache = self.cache or CutCache(len(self.model.layers))
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.text, text[:-1], strict=False)))
        self.cache.cut(same)
        new, guesses, rows = text[same:], [], []
        for _ in range(gamma):
            rows.append(predict(self.model, self.cache, new, greedy=greedy)[-1].tolist())
            new = [pick(rows[-1], uniform)]
            guesses += new
        self.text = [*text, *guesses[:-1]]
        return guesses, rows


class LookupDraft:
    """Guesses that the text continues as it did when its last three tokens occurred in it before."""

    def guess(self, text: list[int], gamma: int, _uniform: Callable[[], float], *, greedy: bool) -> tuple[list[int], list[Row]]:
        """Return the tokens after an earlier place with the same last three tokens, or none if there is no such place.

        Prefer a place that `gamma` tokens follow.
        """
        del greedy  # a guess without a model is always certain
        ends = [end for end in range(len(text) - 1, 2, -1) if text[end - 3 : end] == text[-3:]]
        if not ends:
            return [], []
        guesses = max((text[end : end + gamma] for end in ends), key=len)
        return guesses, torch.nn.functional.one_hot(torch.tensor(guesses), 256).double().tolist()


def _sharpen(row: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.one_hot(row.argmax(), len(row)).double()


def round_weights(model: SmallModel, bits: int) -> SmallModel:
    """Return the model with its matrices in `bits` bits, one scale for each output, as a draft that needs no training."""
    rough = copy.copy(model)
    largest = 2 ** (bits - 1)
    rough.layers = [
        {
            name: weight if weight.ndim == 1 else _round(weight, largest)
            for name, weight in layer.items()
        }
        for layer in model.layers
    ]  # fmt: skip
    return rough


def _round(weight: torch.Tensor, largest: int) -> torch.Tensor:
    step = weight.abs().amax(0, keepdim=True) / (largest - 1)
    return (weight / step).round().clamp(-largest, largest - 1) * step


@dataclass
class Text:
    """A text that was written with guesses: its tokens, the steps of the model, guesses, and guesses that were accepted."""

    tokens: list[int]
    steps: int
    guesses: int
    accepted: int
    overlaps: list[float]

    def __add__(self, other: Text) -> Text:
        """Return the figures of both texts together."""
        return Text(
            self.tokens + other.tokens, self.steps + other.steps, self.guesses + other.guesses,
            self.accepted + other.accepted, self.overlaps + other.overlaps,
        )  # fmt: skip

    def describe(self) -> dict[str, float | None]:
        """Return the figures of the text. `acceptance` is the mean overlap of the draft's and the model's distributions."""
        return {
            "tokens": len(self.tokens), "steps": self.steps, "guesses": self.guesses, "accepted": self.accepted,
            "tokens_per_step": len(self.tokens) / self.steps,
            "acceptance": sum(self.overlaps) / len(self.overlaps) if self.overlaps else None,
        }  # fmt: skip


@torch.no_grad()
def speculate(
    model: SmallModel, draft: Draft, prompt: list[int], count: int, gamma: int, choose: Choose, *, greedy: bool, seed: int
) -> Text:
    """Return at least `count` tokens after the prompt, in steps that each check up to `gamma` guesses."""
    uniform = random.Random(seed).random
    cache, text = CutCache(len(model.layers)), list(prompt)
    result = Text([], 0, 0, 0, [])
    predict(model, cache, text[:-1], greedy=greedy)
    while len(text) < len(prompt) + count:
        guesses, q = draft.guess(text, gamma, uniform, greedy=greedy)
        p = predict(model, cache, [text[-1], *guesses], greedy=greedy)
        result.overlaps += torch.minimum(p[:-1], torch.tensor(q, dtype=p.dtype)).sum(-1).tolist() if guesses else []
        certain = choose(guesses, q, p.tolist(), uniform)
        if not certain:
            raise ValueError("a step returned no token: it always yields at least one")
        text += certain
        cache.cut(len(text) - 1)  # the keys of rejected guesses go; the last token is computed in the next step
        result.steps += 1
        result.guesses += len(guesses)
        result.accepted += len(certain) - 1
    result.tokens = text[len(prompt) :]
    return result


def choose_likeliest(guesses: list[int], _q: list[Row], p: list[Row], _uniform: Callable[[], float]) -> list[int]:
    """Return the tokens of a step at temperature 0: each row of p has one token, and nothing depends on chance."""
    best = [row.index(max(row)) for row in p]
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(guesses, best, strict=False)))
    return best[: same + 1]
