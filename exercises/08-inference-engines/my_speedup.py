"""Your second part of 8.5: how many tokens a step yields, and how many guesses pay.

You will learn    how acceptance turns into tokens, and when speculation costs more than it saves
You will produce  the expected tokens of a step, and the best number of guesses for a batch
Try it            gpucourse try 8.5
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-6-speculation.md, "Tokens per step" and "When it pays off"
"""

from __future__ import annotations

from collections.abc import Callable


def expected_tokens(alpha: float, gamma: int) -> float:
    """Return the mean number of tokens of one step of the large model, with `gamma` guesses (0 or more).

    Each guess is accepted with probability `alpha` (0 to 1), independently of the others. The first guess that is rejected ends
    the step, and is replaced. If all are accepted, the step yields one more token.
    """
    raise NotImplementedError("expected_tokens: with what probability does a step yield at least k tokens?")


def best_gamma(alpha: float, step_ns: Callable[[int], int], draft_ns: int, largest: int) -> int:
    """Return the number of guesses, from 0 to `largest`, at which tokens are written fastest; the smallest of equal ones.

    `step_ns(n)` is the time, in nanoseconds, of a step of the large model that computes n tokens of each request. `draft_ns` is
    the time in which the small model guesses one token of each request. Guesses are made one after the other.
    """
    raise NotImplementedError("best_gamma: how long does a step with gamma guesses take, and how many tokens does it yield?")
