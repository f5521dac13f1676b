"""A test of whether texts come from a model: the chi-square test over three tokens in a row, for a model with four tokens."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import torch

FALSE_ALARM = 1e-6
ENOUGH = 5  # cells with fewer expected texts are merged
LARGE = ((0.20, 0.45, 0.25, 0.10), (0.35, 0.15, 0.30, 0.20), (0.10, 0.30, 0.20, 0.40), (0.40, 0.10, 0.35, 0.15))
SMALL = ((0.35, 0.25, 0.15, 0.25), (0.20, 0.30, 0.20, 0.30), (0.25, 0.15, 0.40, 0.20), (0.25, 0.30, 0.20, 0.25))
"""Distributions after each token, of the large and of the small model. Both look back at one token. A text follows token 0."""
Rows = Sequence[Sequence[float]]
TEXTS = list(itertools.product(range(len(LARGE)), repeat=3))


def weigh_texts(rows: Rows) -> torch.Tensor:
    """Return the probability of each text of three tokens."""
    return torch.tensor([rows[0][a] * rows[a][b] * rows[b][c] for a, b, c in TEXTS], dtype=torch.float64)


def mix(percent: float) -> Rows:
    """Return a mixture of the rows: `percent` percent of the small model's, the rest of the large model's."""
    share = percent / 100
    return [[(1 - share) * p + share * q for p, q in zip(*rows, strict=True)] for rows in zip(LARGE, SMALL, strict=True)]


def measure(counts: torch.Tensor) -> tuple[float, float]:
    """Return the chi-square statistic of the counts of all texts, and the value above which the large model cannot have written
    them (with a false alarm once in a million tests)."""
    expected = counts.sum() * weigh_texts(LARGE)
    large = expected >= ENOUGH
    observed = torch.cat([counts[large], counts[~large].sum()[None]]) if (~large).any() else counts
    expected = torch.cat([expected[large], expected[~large].sum()[None]]) if (~large).any() else expected
    return float(((observed - expected) ** 2 / expected).sum()), find_critical(len(expected) - 1)


def find_critical(freedom: int, false_alarm: float = FALSE_ALARM) -> float:
    """Return the value that chi-square with `freedom` degrees of freedom exceeds with the probability `false_alarm`."""
    low, high = 0.0, 100.0 + 20.0 * freedom
    half = torch.tensor(freedom / 2, dtype=torch.float64)
    for _ in range(80):
        middle = (low + high) / 2
        tail = float(torch.special.gammaincc(half, torch.tensor(middle / 2, dtype=torch.float64)))
        low, high = (middle, high) if tail > false_alarm else (low, middle)
    return high


def draw(rows: Rows, samples: int, source: torch.Generator) -> torch.Tensor:
    """Return how often each text occurs among `samples` texts that are drawn from these rows."""
    drawn = torch.multinomial(weigh_texts(rows), samples, replacement=True, generator=source)
    return drawn.bincount(minlength=len(TEXTS)).double()


def count_texts(verify: Callable[..., Sequence[int]], samples: int, gamma: int, seed: int) -> tuple[torch.Tensor, int, int]:
    """Return how often each text occurs if verify checks guesses of the small model, and the numbers of tokens and calls."""
    uniform = random.Random(seed).random
    counts, places = torch.zeros(len(TEXTS), dtype=torch.float64), {text: place for place, text in enumerate(TEXTS)}
    tokens = calls = 0
    for _ in range(samples):
        text = [0]
        while len(text) < 4:
            guesses: list[int] = []
            for _ in range(gamma):
                guesses.append(draw_one(SMALL[guesses[-1] if guesses else text[-1]], uniform()))
            before = [text[-1], *guesses]
            certain = verify(
                list(guesses), [SMALL[token] for token in before[:-1]], [LARGE[token] for token in before], uniform
            )
            if not certain:
                raise ValueError("verify returned no token")
            text += certain
            tokens += len(certain)
            calls += 1
        counts[places[tuple(text[1:4])]] += 1
    return counts, tokens, calls


def draw_one(row: Sequence[float], number: float) -> int:
    """Return the token whose part of the cumulated probabilities contains a number from 0 to below 1."""
    for token, share in enumerate(row):
        number -= share
        if number < 0:
            return token
    return len(row) - 1
