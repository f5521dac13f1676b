"""Your part of 8.5: the rule by which a large model checks the guesses of a small one.

You will learn    why the resulting text is exactly the large model's, although a small model guessed most of it
You will produce  a `verify` that keeps as many guesses as possible, and changes no probability
Try it            gpucourse try 8.5
Your part         the body of `verify`; keep its name and parameters, and add functions as you like
Reading           modules/08-inference-engines/lesson-6-speculation.md, "The rule"
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def verify(
    draft: Sequence[int], q: Sequence[Sequence[float]], p: Sequence[Sequence[float]], uniform: Callable[[], float]
) -> list[int]:
    """Return the tokens that are certain after one step of the large model: at least one, at most len(draft) + 1.

    `draft` holds the tokens that the small model guessed, one after the other. It is empty if there was no guess. `q[i]` is the
    small model's distribution at place i, a probability for every token: draft[i] was drawn from it, so `q[i][draft[i]]` is
    above 0. `p[i]` is the large model's distribution at place i, after draft[:i]. `p` has one row more than `draft`: the large
    model has also computed the distribution after the last guess.

    `uniform()` returns a new random number from 0 to below 1. It must be the only source of randomness. The tokens must be
    distributed as if the large model had drawn each of them.
    """
    raise NotImplementedError("verify: with what probability is a guess kept, and what replaces a guess that is not?")
