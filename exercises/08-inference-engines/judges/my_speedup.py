"""Judge my_speedup.py of 8.5 with exact cases: tokens of a step, then the number of guesses that is fastest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from gpucourse.judge import Case, Part, Way

IN_32_BITS = 1e-6  # a tensor may have no more
ACCEPTANCES, GUESSES = (0.8, 0.5, 0.0, 0.9, 1.0), (4, 1, 0, 8)
WAYS = {
    "without-the-extra-token": Way(
        "for alpha {alpha} and gamma {gamma} it returned {given}, which counts only the guesses that are accepted. Each step "
        "yields one more token, drawn by the large model: {right}",
        ("sum(alpha**count for count in range(gamma + 1))", "sum(alpha**count for count in range(1, gamma + 1))"),
    ),
    "one-term-short": Way(
        "for alpha {alpha} and gamma {gamma} it returned {given} instead of {right}: if all {gamma} guesses are accepted, a "
        "step yields {gamma} + 1 tokens, so the sum has {gamma} + 1 terms",
        ("sum(alpha**count for count in range(gamma + 1))", "sum(alpha**count for count in range(gamma))"),
    ),
    "each-by-itself": Way(
        "for alpha {alpha} and gamma {gamma} it returned {given}: 1 + gamma × alpha. But a guess counts only if every guess "
        "before it was accepted: {right}",
        ("sum(alpha**count for count in range(gamma + 1))", "1 + gamma * alpha"),
    ),
    "no-end-at-one": Way(
        "with alpha 1 all guesses are accepted, and a step yields gamma + 1 tokens. The closed form divides 0 by 0 there",
        ("sum(alpha**count for count in range(gamma + 1))", "(1 - alpha ** (gamma + 1)) / (1 - alpha)"),
    ),
    "guesses-for-free": Way(
        "it returned {given} instead of {right}: each guess takes the small model {draft_ms} ms, one after the other, and "
        "this time is not counted",
        (" + gamma * draft_ns", ""),
    ),
    "one-guess-paid": Way(
        "it returned {given} instead of {right}: you count {draft_ms} ms once. Each guess depends on the one before it, so "
        "gamma guesses take gamma times as long",
        ("gamma * draft_ns", "draft_ns"),
    ),
    "never-zero": Way(
        "it returned {given}, but no guess pays: without guesses a token takes {plain_ms:.1f} ms here, with one guess "
        "{one_ms:.1f} ms. 0 is a possible answer",
        ("max(range(largest + 1), key=speed)", "max(range(1, largest + 1), key=speed)"),
    ),
    "checked-for-free": Way(
        "it returned {given} instead of {right}: you count step_ns(1) for every step. A step with gamma guesses computes "
        "gamma + 1 tokens of each request",
        ("step_ns(gamma + 1)", "step_ns(1)"),
    ),
    "a-step-for-each-token": Way(
        "it returned {given} instead of {right}: you count gamma + 1 steps. The large model checks all guesses in one "
        "step, and reads its weights once",
        ("step_ns(gamma + 1)", "(gamma + 1) * step_ns(1)"),
    ),
    "largest-not-tried": Way(
        "it returned {given}, but {right} guesses are faster, and allowed: try all numbers from 0 to largest, including "
        "largest itself",
        ("max(range(largest + 1), key=speed)", "max(range(largest), key=speed)"),
    ),
    "most-tokens": Way(
        "it returned {given}, with which a step yields the most tokens. More guesses always yield more tokens, but tokens per"
        " second count",
        (" / (step_ns(gamma + 1) + gamma * draft_ns)", ""),
    ),
}


def sum_powers(alpha: float, gamma: int) -> float:
    """Return 1 + alpha + ... + alpha ** gamma."""
    return sum(alpha**count for count in range(gamma + 1))


def make_step(fixed_us: int, token_us: int, limit: int) -> Callable[[int], int]:
    """Return the time of a step: fixed until `limit` tokens, and then in proportion to the tokens."""
    return lambda tokens: 1000 * (fixed_us + token_us * max(0, tokens - limit))


BATCHES = {  # the time of a step, the time of a guess in ns, and the largest number of guesses
    "a step whose weights are read in 60 ms": (make_step(60_000, 0, 1), 9_000_000, 8),
    "a step in which every token takes as long as the first": (make_step(60_000, 60_000, 1), 9_000_000, 8),
    "guesses that take no time, from the text itself": (make_step(60_000, 2_000, 3), 0, 8),
    "a step with room for six tokens": (make_step(60_000, 40_000, 6), 2_000_000, 12),
    "at most two guesses": (make_step(60_000, 0, 1), 1_000_000, 2),
    "a slow small model": (make_step(60_000, 0, 1), 45_000_000, 8),
}


def judge(part: Part) -> None:
    """Judge the tokens of a step, then the best number of guesses of several batches."""
    expected_tokens = part.function("expected_tokens")
    cases = []
    for alpha in ACCEPTANCES:
        for gamma in GUESSES:
            case = f"alpha {alpha}, gamma {gamma}"
            try:
                result = part.call(expected_tokens, alpha, gamma, case=case)
            except BaseException as verdict:
                if alpha == 1 and "ZeroDivision" in str(getattr(verdict, "says", "")):
                    raise part.wrong("no-end-at-one", case) from None
                raise
            tokens = sum_powers(alpha, gamma)
            ways = {
                "without-the-extra-token": tokens - 1,
                "one-term-short": tokens - alpha**gamma,
                "each-by-itself": 1 + gamma * alpha,
            }
            result = result.tolist() if hasattr(result, "tolist") else result
            if alpha == 1 and isinstance(result, float) and not math.isfinite(result):
                part.compare(cases, tolerance=IN_32_BITS)
                raise part.wrong("no-end-at-one", case)
            cases.append(Case(case, result, tokens, ways, {"alpha": alpha, "gamma": gamma}))
    part.compare(cases, tolerance=IN_32_BITS)
    _judge_best(part)
    part.note(f"tokens of {len(cases)} steps, and the best number of guesses of {len(BATCHES)} batches")


def _judge_best(part: Part) -> None:
    best_gamma = part.function("best_gamma")
    cases = []
    for name, (step_ns, draft_ns, largest) in BATCHES.items():
        for alpha in (0.7, 0.9, 0.0):
            case = f"alpha {alpha}, {name}"
            result = part.call(best_gamma, alpha, step_ns, draft_ns, largest, case=case)
            choices = list_choices(alpha, step_ns, draft_ns, largest)
            one_ms = (step_ns(2) + draft_ns) / sum_powers(alpha, 1) / 1e6
            values = {"draft_ms": draft_ns // 10**6, "plain_ms": step_ns(1) / 1e6, "one_ms": one_ms}
            cases.append(Case(case, result, choices.pop("right"), choices, values, {"alpha": alpha, "the batch": name}))
    part.compare(cases)


def list_choices(alpha: float, step_ns: Callable[[int], int], draft_ns: int, largest: int) -> dict[str, int]:
    """Return the right number of guesses, and the number that each mistake leads to."""

    def find(time_of: Callable[[int], float], allowed: Iterable[int] = range(largest + 1)) -> int:
        return max(allowed, key=lambda gamma: sum_powers(alpha, gamma) / time_of(gamma))

    def whole(gamma: int) -> int:
        return step_ns(gamma + 1) + gamma * draft_ns

    return {
        "right": find(whole),
        "guesses-for-free": find(lambda gamma: step_ns(gamma + 1)),
        "one-guess-paid": find(lambda gamma: step_ns(gamma + 1) + draft_ns),
        "never-zero": find(whole, range(1, largest + 1)),
        "checked-for-free": find(lambda gamma: step_ns(1) + gamma * draft_ns),
        "a-step-for-each-token": find(lambda gamma: (gamma + 1) * step_ns(1) + gamma * draft_ns),
        "largest-not-tried": find(whole, range(largest)),
        "most-tokens": find(lambda _: 1),
    }
