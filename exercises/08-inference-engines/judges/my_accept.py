"""Judge my_accept.py of 8.5 without random numbers: `verify` runs on a grid of numbers, and its distribution is compared
with p.

A target and a draft model look back at one token each. For every pair of guesses, `verify` runs on each point of a Halton grid
instead of random numbers. The result is the distribution of the next three tokens; the target itself continues a short step.
A wrong rule is recognised by its distribution.
"""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way, plant_ways

SIZE, GAMMA, POINTS, PART_OF_GRID = 5, 2, 1024, 512
LIMIT = 0.02  # of the total variation distance: the grid is off by 0.003 to 0.015, and wrong rules by 0.08 or more
ALIKE = 0.015  # of the same distance: two rules that are closer count as the same
P = (
    (0.30, 0.20, 0.35, 0.05, 0.10),
    (0.15, 0.40, 0.05, 0.25, 0.15),
    (0.08, 0.22, 0.20, 0.42, 0.08),
    (0.45, 0.10, 0.10, 0.10, 0.25),
    (0.12, 0.13, 0.45, 0.20, 0.10),
)
Q = (
    (0.15, 0.35, 0.15, 0.20, 0.15),
    (0.35, 0.15, 0.20, 0.10, 0.20),
    (0.25, 0.10, 0.40, 0.15, 0.10),
    (0.20, 0.25, 0.20, 0.25, 0.10),
    (0.30, 0.25, 0.15, 0.10, 0.20),
)


_FREE = "all {count} guesses were kept. The large model has computed p[{count}] as well"
WAYS = {
    "own-chance": Way(
        "with the same numbers from uniform(), verify returned {first} and then {second}: uniform() must be the only source "
        "of randomness",
        ("uniform() < p[place]", '__import__("random").random() < p[place]'),
    ),
    "drawn-from-p": Way(
        "after a rejection you draw from p itself. Tokens that are more probable in q than in p are already kept often, and "
        "drawing from p adds to them: token {token}, with p {large:.2f} and q {small:.2f}, comes too often. Draw from max(0, "
        "p - q)",
        (
            "rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], strict=True)]",
            "rest = p[place]",
        ),
    ),
    "drawn-from-q": Way(
        "after a rejection you draw from q: the small model's guess was rejected, and you let it guess again. What is missing"
        " is max(0, p - q)",
        (
            "rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], strict=True)]",
            "rest = q[place]",
        ),
    ),
    "absolute-difference": Way(
        "you draw from the absolute difference of p and q. Something is missing only where p is larger: max(0, p - q)",
        ("max(0.0, large - small)", "abs(large - small)"),
    ),
    "other-way-round": Way(
        "you draw from max(0, q - p). Those tokens come too often already; max(0, p - q) is missing",
        ("max(0.0, large - small)", "max(0.0, small - large)"),
    ),
    "p-without-the-token": Way(
        "after a rejection you draw from p without the rejected token. Other tokens may be more probable in q than in p as "
        "well, and then come too often",
        (
            "rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], strict=True)]",
            "rest = [0.0 if other == token else large for other, large in enumerate(p[place])]",
        ),
    ),
    "not-normalised": Way(
        "max(0, p - q) sums to {sum:.2f} at the first place, not to 1. You draw from it as if it were 1, and most of the rest"
        " falls on one token",
        ("    number *= sum(weights)\n", ""),
    ),
    "accepts-by-p": Way(
        "a guess is kept with probability p. Token {token} has p {large:.2f} and q {small:.2f}: it is guessed in {small:.0%} "
        "of all cases, and kept in {large:.0%} of these. Keep it with probability p / q",
        (
            "uniform() < p[place][token] / q[place][token]",
            "uniform() < p[place][token]",
        ),
    ),
    "ratio-upside-down": Way(
        "a guess is kept with probability q / p: tokens that are more probable in p than in q are rejected",
        (
            "uniform() < p[place][token] / q[place][token]",
            "uniform() < q[place][token] / max(p[place][token], 1e-9)",
        ),
    ),
    "accepts-if-likelier": Way(
        "a guess is kept exactly if its p is at least its q. If p is smaller, it still has to be kept sometimes: with "
        "probability p / q",
        (
            "uniform() < p[place][token] / q[place][token]",
            "p[place][token] >= q[place][token]",
        ),
    ),
    "accepts-always": Way(
        "every guess is kept: that is the small model's text",
        (
            "uniform() < p[place][token] / q[place][token]",
            "uniform() < 2",
        ),
    ),
    "only-the-likeliest": Way(
        "a guess is kept only if it is p's likeliest token. That is right at temperature 0 and nowhere else",
        (
            "uniform() < p[place][token] / q[place][token]",
            "p[place][token] == max(p[place])",
        ),
    ),
    "goes-on-after-rejection": Way(
        "after a rejected guess, later guesses are kept: {result} for the guesses {draft}. They were guessed after a token "
        "that is no longer there. The step ends at the first rejection",
        (
            "        return [*kept, pick(rest, uniform())]\n    return",
            "        kept.append(pick(rest, uniform()))\n    return",
        ),
    ),
    "no-extra-token": Way(
        _FREE + ", and nothing is drawn from it: a step yields {mean:.2f} tokens on average instead of {right:.2f}. No test of "
        "the distribution can see this",
        (
            "    return [*kept, pick(p[len(draft)], uniform())]",
            "    return kept",
        ),
    ),
    "extra-from-the-last-place": Way(
        _FREE + ": it belongs to the place after the last guess. You draw the extra token from p[{last}]",
        ("pick(p[len(draft)], uniform())", "pick(p[len(draft) - 1], uniform())"),
    ),
    "extra-from-q": Way(
        _FREE + ", and the extra token has to come from it. You draw it from q",
        ("pick(p[len(draft)], uniform())", "pick(q[-1] if q else p[0], uniform())"),
    ),
    "one-number-for-both": Way(
        "the number that rejected a guess also chooses its replacement. It is known to be at least p / q, so it prefers some "
        "tokens: call uniform() again",
        (
            (
                "        if uniform() < p[place][token] / q[place][token]:\n            kept.append(token)\n"
                "            continue\n"
                "        rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], "
                "strict=True)]\n        return [*kept, pick(rest, uniform())]"
            ),
            (
                "        number = uniform()\n        if number < p[place][token] / q[place][token]:\n"
                "            kept.append(token)\n            continue\n"
                "        rest = [max(0.0, large - small) for large, small in zip(p[place], q[place], "
                "strict=True)]\n        return [*kept, pick(rest, number)]"
            ),
        ),
    ),
    "row-too-late": Way(
        "after a rejection at place i, you subtract q[i] from p[i + 1]. p[i] and q[i] describe the same place",
        ("zip(p[place], q[place], strict=True)", "zip(p[place + 1], q[place], strict=True)"),
    ),
    "nothing-for-the-rejected": Way(
        "for the guesses {draft} it returned {result}, and nothing replaces the guess that was rejected: a step always yields "
        "one token that the small model did not choose",
        ("        return [*kept, pick(rest, uniform())]", "        return kept or [pick(rest, uniform())]"),
    ),
    "first-only": Way(
        "only the first guess is checked: a step never yields more than two tokens. Continue after a guess that was kept",
        (
            "            kept.append(token)\n            continue\n",
            "            return [token, pick(p[place + 1], uniform())]\n",
        ),
    ),
}
Rows = Sequence[Sequence[float]]
Results = dict[tuple[int, ...], float]
Verify = Callable[[list[int], Rows, Rows, Callable[[], float]], list[int]]


def judge(part: Part) -> None:
    """Judge steps without randomness, then the distribution of the next three tokens, then the tokens of a step."""
    verify = part.function("verify")
    _judge_certain(part, verify, tokens_count=False)
    _judge_chance(part, verify)
    observer = _Observer(part, verify)
    tokens, mean = play(observer, GRID)
    distance, right_mean = measure_distance(tokens, TARGET), 1 + sum(_list_accepted())
    if distance <= LIMIT and abs(mean - right_mean) < LIMIT:
        _judge_certain(part, verify, tokens_count=True)
        part.note(f"the next three tokens: off by {distance:.4f} (total variation); {mean:.2f} tokens a step")
        return
    if way := recognise(tokens, mean):
        token = max(range(SIZE), key=lambda token: Q[0][token] - P[0][token])
        draft, tokens = observer.rejection
        raise part.wrong(
            way, token=token, large=P[0][token], small=Q[0][token], sum=1 - OVERLAP[0], count=GAMMA, last=GAMMA - 1,
            mean=mean, right=right_mean, draft=draft, result=tokens,
        )  # fmt: skip
    if distance <= LIMIT:
        text = f"the distribution is right, but a step yields {mean:.2f} tokens instead of {right_mean:.2f}"
        raise Verdict("failed", "other", text)
    shares = [sum(share for result, share in tokens.items() if result[0] == first) for first in range(SIZE)]
    text = (
        f"the next {GAMMA + 1} tokens are off by {distance:.3f} (total variation; at most {LIMIT} is allowed). The first one "
        f"is 0, 1, 2, ... with the probabilities {_list_shares(shares)}; the large model has {_list_shares(P[0])}"
    )
    raise Verdict("failed", "other", text)


def _list_shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.2f}" for share in shares)


def _judge_chance(part: Part, verify: Verify) -> None:
    """Check that the same numbers yield the same tokens, and that the rows stay as they are."""
    for draft, q, p, _ in list_drafts():
        q_copy, p_copy = [list(row) for row in q], [list(row) for row in p]
        for point in GRID[:8]:
            case = f"the guesses {list(draft)}"
            first, second = (
                _read_tokens(part.call(verify, list(draft), q_copy, p_copy, draw_numbers(point).__next__, case=case), case)
                for _ in range(2)
            )
            if first != second:
                raise part.wrong("own-chance", case, first=first, second=second)
        if (q_copy, p_copy) != ([list(row) for row in q], [list(row) for row in p]):
            raise Verdict("failed", "other", "it changes the rows of q or p, which the caller still needs: copy them first")


CERTAIN = ([], [3]), ([1], [1, 4]), ([1, 2, 0, 4], [1, 2, 0, 4, 2]), ([1, 2, 0, 4], [1, 2, 3, 4, 2]), ([2], [0, 1])
"""Guesses, and the token of which the large model is certain at each place."""


def _judge_certain(part: Part, verify: Verify, *, tokens_count: bool) -> None:
    """Judge steps in which the large model is certain: the form of their results, or with `tokens_count` the tokens."""
    for guesses, best in CERTAIN:
        case = f"the guesses {guesses}, where the large model is certain of {best}"
        q, p = ([[float(token == other) for other in range(SIZE)] for token in tokens] for tokens in (guesses, best))
        tokens = _read_tokens(part.call(verify, list(guesses), q, p, random.Random(0).random, case=case), case)
        same = next((at for at, (guess, token) in enumerate(zip(guesses, best, strict=False)) if guess != token), len(guesses))
        if tokens_count:
            part.compare([Case(case, tokens, best[: same + 1])])
        elif same > 2 and tokens == best[:2]:
            raise part.wrong("first-only", case)
        elif len(tokens) > same + 1 and tokens[: same + 1] == best[: same + 1]:
            raise part.wrong("goes-on-after-rejection", case, result=tokens, draft=guesses)
        elif (not tokens and guesses) or tokens == best[:same] != guesses:
            raise part.wrong("nothing-for-the-rejected", case, result=tokens, draft=guesses)


def _read_tokens(result: Any, case: str) -> list[int]:
    """Return a result as a list of tokens. Raises Verdict if it is not one."""
    if result is None:
        raise Verdict("failed", "no-answer", "it returned None: is the return missing?", case)
    try:
        tokens = result.tolist() if hasattr(result, "tolist") else result
        tokens = [operator.index(token) for token in tokens] if isinstance(tokens, (list, tuple)) else [-1]
    except TypeError:
        tokens = [-1]
    if not all(0 <= token < SIZE for token in tokens):
        raise Verdict("failed", "other", f"it returned {str(result)[:60]}, not a list of tokens from 0 to {SIZE - 1}", case)
    return tokens


class _Observer:
    """Calls verify on one point after the other, checks the form of each result, and remembers one with a rejection."""

    def __init__(self, part: Part, verify: Verify) -> None:
        self.part, self.verify = part, verify
        self.rejection: tuple[list[int], list[int]] = [], []

    def __call__(self, draft: list[int], q: Rows, p: Rows, uniform: Callable[[], float]) -> list[int]:
        """Return the tokens. Raises Verdict if they cannot be the result of a step."""
        case = f"the guesses {draft}"
        tokens = _read_tokens(self.part.call(self.verify, draft, q, p, uniform, case=case), case)
        if not tokens:
            raise self.part.wrong("nothing-for-the-rejected", case, draft=draft, result=tokens)
        if len(tokens) > GAMMA + 1:
            text = f"{len(tokens)} tokens for {GAMMA} guesses: at most one token more than guesses can be certain"
            raise Verdict("failed", "other", text, case)
        if tokens[0] != draft[0]:
            self.rejection = list(draft), tokens
        return tokens


def play(verify: Verify, grid: Sequence[Sequence[float]]) -> tuple[Results, float]:
    """Return the distribution of three tokens, if the target continues short results, and the mean length of the results."""
    results: Results = {}
    for draft, q, p, weight in list_drafts():
        for point in grid:
            tokens = tuple(verify(list(draft), q, p, draw_numbers(point).__next__))
            results[tokens] = results.get(tokens, 0.0) + weight / len(grid)
    return continue_with_target(results), sum(share * len(tokens) for tokens, share in results.items())


def list_drafts() -> Iterator[tuple[tuple[int, ...], Rows, Rows, float]]:
    """Return each pair of guesses after token 0: the guesses, their rows of q and p, and how likely they are."""
    for first, second in itertools.product(range(SIZE), repeat=GAMMA):
        yield (first, second), (Q[0], Q[first]), (P[0], P[first], P[second]), Q[0][first] * Q[first][second]


def continue_with_target(results: Results) -> Results:
    """Return the distribution of three tokens: the target itself continues results that are shorter."""
    whole: Results = {}
    for tokens, share in results.items():
        for tail in itertools.product(range(SIZE), repeat=GAMMA + 1 - len(tokens)):
            text = (0, *tokens, *tail)
            following = math.prod(P[text[at]][text[at + 1]] for at in range(len(tokens), GAMMA + 1))
            whole[text[1:]] = whole.get(text[1:], 0.0) + share * following
    return whole


def measure_distance(left: Results, right: Results) -> float:
    """Return the total variation distance of two distributions."""
    return sum(abs(left.get(tokens, 0.0) - right.get(tokens, 0.0)) for tokens in {*left, *right}) / 2


def recognise(tokens: Results, mean: float) -> str:
    """Return the mistake with this distribution and this mean length, or an empty text.

    The solution with the change of each mistake runs on a part of the grid.
    """
    nearest, way_name = ALIKE, ""
    for name, module in plant_ways(WAYS, __file__):
        if name == "own-chance":
            continue
        whole, way_mean = play(module.verify, GRID[:PART_OF_GRID])
        distance = max(measure_distance(tokens, whole), abs(mean - way_mean) / 2)
        if distance < nearest:
            nearest, way_name = distance, name
    return way_name


def draw_numbers(point: Sequence[float]) -> Iterator[float]:
    """Yield the numbers of a point, and then as many others as a rule needs, the same for the same point."""
    yield from point
    source = random.Random(point[0])
    while True:
        yield source.random()


def _halton(number: int, base: int) -> float:
    value, share = 0.0, 1.0
    while number:
        share /= base
        value += share * (number % base)
        number //= base
    return value


def _list_accepted() -> Iterator[float]:
    yield OVERLAP[0]
    yield sum(min(p, q) * OVERLAP[token] for token, (p, q) in enumerate(zip(P[0], Q[0], strict=True)))


OVERLAP = [sum(map(min, p, q)) for p, q in zip(P, Q, strict=True)]
GRID = [tuple(_halton(number + 1, base) for base in (2, 3, 5, 7, 11, 13, 17, 19)) for number in range(POINTS)]
TARGET = {
    tokens: P[0][tokens[0]] * P[tokens[0]][tokens[1]] * P[tokens[1]][tokens[2]]
    for tokens in itertools.product(range(SIZE), repeat=GAMMA + 1)
}
