"""Judge my_setting.py of 4.3: the goodput of single rounds, then the choice in noisy sweeps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from math import ceil
from statistics import median
from typing import Any

from gpucourse.judge import Case, Part, Way

Request = dict[str, Any]
Rounds = list[tuple[list[Request], float]]  # of one batch size: requests, seconds
Limits = tuple[float, float]  # of TTFT and TPOT in ms

TOKENS = 25  # of each answer in a sweep
LIMITS: Limits = (500.0, 50.0)
FIXED_SHARES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.1)  # of the highest goodput, from which a difference counts by mistake
WAYS = {
    "all-tokens": Way(
        "you counted the tokens of all requests: that is the throughput. Of the {count} requests, {late} exceeded a limit",
        ("for request in requests if is_good(request, ttft_limit_ms, tpot_limit_ms))", "for request in requests)"),
    ),
    "first-token-only": Way(
        "you looked at TTFT only: {slow} of these requests began in time, but then their tokens came too slowly",
        (" and (tpot_ms is None or tpot_ms <= tpot_limit_ms)", ""),
    ),
    "later-tokens-only": Way(
        "you looked at TPOT only: {waited} of these requests waited too long for their first token",
        (" and ttft_ms <= ttft_limit_ms", ""),
    ),
    "either-limit": Way(
        "you counted a request that keeps one of the two limits: it has to keep both",
        (
            "ttft_ms <= ttft_limit_ms and (tpot_ms is None or tpot_ms <= tpot_limit_ms)",
            "(ttft_ms <= ttft_limit_ms or tpot_ms is None or tpot_ms <= tpot_limit_ms)",
        ),
    ),
    "below-the-limit": Way(
        "a time of exactly the limit keeps it: at most {ttft:g} and {tpot:g} ms are allowed",
        (
            "ttft_ms <= ttft_limit_ms and (tpot_ms is None or tpot_ms <= tpot_limit_ms)",
            "ttft_ms < ttft_limit_ms and (tpot_ms is None or tpot_ms < tpot_limit_ms)",
        ),
    ),
    "one-token-late": Way(
        "you left out answers of one token: they have no TPOT, so they cannot exceed its limit",
        ("(tpot_ms is None or tpot_ms <= tpot_limit_ms)", "tpot_ms is not None and tpot_ms <= tpot_limit_ms"),
    ),
    "share-of-throughput": Way(
        "you multiplied the throughput by the share of requests that keep the limits. Answers differ in length, so these "
        "requests need not have that share of the tokens",
        (
            "return sum(request[\"tokens\"] for request in requests if is_good(request, ttft_limit_ms, tpot_limit_ms))"
            " / seconds",
            "good = sum(is_good(request, ttft_limit_ms, tpot_limit_ms) for request in requests)\n"
            "    return sum(request[\"tokens\"] for request in requests) * good / len(requests) / seconds",
        ),
    ),
    "requests-counted": Way(
        "you counted requests per second: the tokens of these requests were asked for",
        ("sum(request[\"tokens\"] for", "sum(1 for"),
    ),
    "promise-ignored": Way(
        "batch size {given} has the highest goodput, but breaks the promise: only {good:.0f}% of its requests keep both "
        "limits, and {percent:g}% have to",
        ("if 100 * sum(good) >= percent * len(good):", "if good:"),
    ),
    "each-limit-alone": Way(
        "batch size {given} keeps each limit for {percent:g}% of its requests, but both for {good:.0f}% only: the requests "
        "that wait long are not those whose tokens come slowly",
        (
            "if 100 * sum(good) >= percent * len(good):",
            "requests = [request for requests, _ in measured for request in requests]\n"
            "        first = sum(request[\"ttft_ms\"] <= ttft_limit_ms for request in requests)\n"
            "        later = sum(request[\"tpot_ms\"] <= tpot_limit_ms for request in requests)\n"
            "        if 100 * min(first, later) >= percent * len(good):",
        ),
    ),
    "every-round": Way(
        "you asked every round of batch size {right} to keep the promise. It was given for all requests together, and of these "
        "{right_good:.0f}% keep both limits",
        (
            "if 100 * sum(good) >= percent * len(good):",
            "shares = [sum(is_good(request, ttft_limit_ms, tpot_limit_ms) for request in requests) / len(requests)\n"
            "                  for requests, _ in measured]\n"
            "        if 100 * min(shares) >= percent:",
        ),
    ),
    "promise-exceeded": Way(
        "exactly {percent:g}% of the requests of batch size {right} keep both limits, and that is enough: at least "
        "{percent:g}% have to",
        ("if 100 * sum(good) >= percent * len(good):", "if 100 * sum(good) > percent * len(good):"),
    ),
    "throughput-decides": Way(
        "batch size {given} has the highest throughput, not the highest goodput: the tokens of its late requests do not count",
        (
            "[goodput(requests, seconds, ttft_limit_ms, tpot_limit_ms) for requests, seconds in measured]",
            "[sum(request[\"tokens\"] for request in requests) / seconds for requests, seconds in measured]",
        ),
    ),
    "noise-decides": Way(
        "you took the batch size with the highest goodput, {given}. The rounds of {right} differ from its rounds by no more "
        "than rounds of one batch size do, so this measurement cannot tell them apart, and the smaller one makes its requests "
        "wait less",
        ("return min(batch for batch in rates if quarter(rates[batch], 75) >= slow_round)", "return best"),
    ),
    "lucky-round": Way(
        "you took the batch size with the fastest single round: then an outlier decides. Compare the medians",
        ("key=lambda batch: median(rates[batch])", "key=lambda batch: max(rates[batch])"),
    ),
    "one-accident": Way(
        "one round of {right} was slow by accident, and its other rounds are all faster than those of {given}: one round must "
        "not decide",
        ("quarter(rates[best], 25)", "min(rates[best])"),
    ),
    "fixed-share": Way(
        "your choice is {given}, as if a difference counted from a fixed share of the highest goodput. What a measurement can "
        "tell depends on its rounds: in some of these sweeps rounds of one batch size differ by 0.1 %, in others by 12 %",
        ("quarter(rates[batch], 75) >= slow_round", "median(rates[batch]) >= 0.95 * median(rates[best])"),
    ),
    "largest": Way(
        "several batch sizes are equally good, and you took the largest of them: with the smallest, requests wait less",
        ("return min(batch for", "return max(batch for"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the goodput first, then the choice, which uses the goodput."""
    goodput, choose_batch = part.function("goodput"), part.function("choose_batch")
    part.compare([case for name, inputs in ROUNDS.items() for case in _list_goodput_cases(part, goodput, name, *inputs)])
    part.compare([case for name, inputs in SWEEPS.items() for case in _list_choice_cases(part, choose_batch, name, *inputs)])
    part.note(f"right for {len(ROUNDS)} rounds and {len(SWEEPS)} sweeps")


def _request(ttft_ms: float | None, tpot_ms: float | None, tokens: int) -> Request:
    return {"ttft_ms": ttft_ms, "tpot_ms": tpot_ms, "tokens": tokens}


ROUNDS: dict[str, tuple[list[Request], float]] = {
    "a round in which all keep both limits": ([_request(120.0, 21.0, 40), _request(180.0, 22.0, 60)], 2.0),
    "a round with late requests": (
        [_request(120.0, 21.0, 40), _request(700.0, 22.0, 90), _request(90.0, 70.0, 80), _request(800.0, 90.0, 70),
         _request(300.0, 30.0, 50)], 4.0,
    ),
    "a round at the limits": ([_request(500.0, 30.0, 64), _request(200.0, 50.0, 32), _request(501.0, 20.0, 16)], 1.6),
    "a round with an answer of one token": (
        [_request(100.0, None, 1), _request(150.0, 20.0, 99), _request(900.0, None, 1)], 2.5,
    ),
    "a round with a refused request": ([_request(None, None, 0), _request(150.0, 20.0, 80), _request(150.0, 60.0, 20)], 2.0),
    "a round that helps nobody": ([_request(900.0, 60.0, 50), _request(950.0, 20.0, 50)], 3.0),
}  # fmt: skip


def _keeps(request: Request, limits: Limits) -> tuple[bool, bool]:
    """Return whether a request keeps the limit of TTFT, and that of TPOT."""
    ttft_ms, tpot_ms = request["ttft_ms"], request["tpot_ms"]
    return ttft_ms is not None and ttft_ms <= limits[0], ttft_ms is not None and (tpot_ms is None or tpot_ms <= limits[1])


def _list_goodput_cases(
    part: Part, goodput: Callable[..., Any], name: str, requests: list[Request], seconds: float
) -> list[Case]:
    afterwards = copy.deepcopy(requests)
    answer = part.call(goodput, afterwards, seconds, *LIMITS, case=name)
    kept = [_keeps(request, LIMITS) for request in requests]

    def count(
        is_counted: Callable[[bool, bool], bool], key: Callable[[Request], int] = lambda request: request["tokens"]
    ) -> float:
        return sum(key(request) for request, both in zip(requests, kept, strict=True) if is_counted(*both)) / seconds

    good = [first and later for first, later in kept]
    right = count(lambda first, later: first and later)
    strict = [
        request["ttft_ms"] is not None and request["ttft_ms"] < LIMITS[0]
        and (request["tpot_ms"] is None or request["tpot_ms"] < LIMITS[1])
        for request in requests
    ]  # fmt: skip
    ways = {
        "all-tokens": count(lambda _first, _later: True),
        "first-token-only": count(lambda first, _later: first),
        "later-tokens-only": count(lambda _first, later: later),
        "either-limit": count(lambda first, later: first or later),
        "below-the-limit": sum(r["tokens"] for r, is_counted in zip(requests, strict, strict=True) if is_counted) / seconds,
        "one-token-late": sum(
            r["tokens"] for r, is_counted in zip(requests, good, strict=True) if is_counted and r["tpot_ms"] is not None
        ) / seconds,
        "share-of-throughput": sum(r["tokens"] for r in requests) * sum(good) / len(requests) / seconds,
        "requests-counted": count(lambda first, later: first and later, lambda _request: 1),
    }  # fmt: skip
    values = {
        "count": len(requests), "late": good.count(False), "ttft": LIMITS[0], "tpot": LIMITS[1],
        "slow": sum(first and not later for first, later in kept), "waited": sum(later and not first for first, later in kept),
    }  # fmt: skip
    return [
        Case(name, answer, right, ways, values),
        Case(f"the requests after the call for {name}", afterwards, requests),
    ]


def _make_rounds(
    speed: float, percent: float, *, waited: int = 0, slow: int = 0, accident: float | None = None, bad_round: int | None = None
) -> Rounds:
    """Return seven rounds of 40 requests whose goodput is within `percent` of `speed`, which is their median.

    In each round, `waited` requests exceed the limit of TTFT alone, and `slow` that of TPOT alone. With `accident`, the fastest
    or the slowest round has this goodput instead. With `bad_round`, all late requests are in the round of this number.
    """
    speeds = [speed * (1 + percent / 100 * step / 3) for step in (3, -2, 0, 1, -3, 2, -1)]
    if accident is not None:
        speeds[0 if accident > speed else 4] = accident
    rounds: Rounds = []
    for number, rate in enumerate(speeds):
        share = 1 if bad_round is None else 7 * (number == bad_round)
        late = [_request(900.0, 20.0, TOKENS)] * (waited * share) + [_request(80.0, 70.0, TOKENS)] * (slow * share)
        requests = [_request(60.0 + 5 * place, 20.0 + place / 10, TOKENS) for place in range(40 - len(late))] + late
        rounds.append((requests, (40 - len(late)) * TOKENS / rate))
    return rounds


SWEEPS: dict[str, tuple[dict[int, Rounds], float]] = {
    "a sweep whose largest batch keeps the limits": (
        {1: _make_rounds(119, 1), 4: _make_rounds(405, 1), 16: _make_rounds(905, 1)}, 90.0,
    ),
    "a sweep whose highest goodput breaks the promise": (
        {4: _make_rounds(405, 1), 8: _make_rounds(700, 1), 16: _make_rounds(905, 1, waited=12)}, 90.0,
    ),
    "a sweep in which different requests exceed each limit": (
        {4: _make_rounds(405, 1), 8: _make_rounds(407, 1, waited=2), 16: _make_rounds(905, 1, waited=3, slow=3)}, 90.0,
    ),
    "a sweep with one bad round": ({2: _make_rounds(210, 1), 8: _make_rounds(700, 1, waited=2, bad_round=3)}, 90.0),
    "a sweep that keeps the promise exactly": (
        {4: _make_rounds(405, 1), 8: _make_rounds(700, 1, waited=1, slow=3), 16: _make_rounds(905, 1, waited=5)}, 90.0,
    ),
    "a sweep whose highest throughput is not its highest goodput": (
        {4: _make_rounds(405, 0.3), 8: _make_rounds(640, 0.3), 16: _make_rounds(610, 0.3, waited=4)}, 90.0,
    ),
    "a sweep in which three batch sizes cannot be told apart": (
        {16: _make_rounds(660, 2), 32: _make_rounds(657, 2), 8: _make_rounds(655, 2), 2: _make_rounds(201, 1)}, 99.0,
    ),
    "a sweep with one lucky round": (
        {32: _make_rounds(605, 1, accident=790), 16: _make_rounds(725, 0.5), 4: _make_rounds(402, 0.5),
         8: _make_rounds(604, 0.5)}, 99.0,
    ),
    "a sweep with one slow round": (
        {8: _make_rounds(640, 0.5), 16: _make_rounds(700, 0.5, accident=420), 4: _make_rounds(400, 0.5)}, 99.0,
    ),
    "a sweep whose smaller batch size has one lucky round": (
        {8: _make_rounds(604, 0.5, accident=790), 16: _make_rounds(725, 0.4), 4: _make_rounds(402, 0.5)}, 99.0,
    ),
    "a sweep with a small and certain difference": (
        {8: _make_rounds(640, 0.2), 16: _make_rounds(660, 0.2), 4: _make_rounds(400, 0.2)}, 99.0,
    ),
    "a sweep with a certain difference below one percent": (
        {8: _make_rounds(640, 0.05), 16: _make_rounds(645, 0.05), 4: _make_rounds(400, 0.05)}, 99.0,
    ),
    "a sweep with an uncertain difference of three percent": (
        {12: _make_rounds(657, 6), 32: _make_rounds(650, 6), 16: _make_rounds(659, 6), 8: _make_rounds(638, 6),
         4: _make_rounds(400, 6)}, 99.0,
    ),
    "a sweep in which nothing keeps the promise": (
        {1: _make_rounds(50, 1, slow=6)[:1], 2: _make_rounds(90, 1, waited=9)[:1]}, 90.0,
    ),
    "a sweep whose smallest batch size is as fast, but breaks the promise": (
        {2: _make_rounds(652, 1, slow=3), 8: _make_rounds(651, 1.5), 16: _make_rounds(656, 1.5)}, 95.0,
    ),
    "a sweep with one batch size": ({64: _make_rounds(1000, 1, accident=400)[3:5]}, 50.0),
}  # fmt: skip


def _list_choice_cases(
    part: Part, choose_batch: Callable[..., Any], name: str, rounds: dict[int, Rounds], percent: float
) -> list[Case]:
    afterwards = copy.deepcopy(rounds)
    answer = part.call(choose_batch, afterwards, *LIMITS, percent, case=name)
    kept = {
        batch: [[_keeps(request, LIMITS) for request in requests] for requests, _ in measured]
        for batch, measured in rounds.items()
    }
    shares = {batch: _share([both for each in of_rounds for both in each]) for batch, of_rounds in kept.items()}
    rates = {batch: [_rate(requests, seconds) for requests, seconds in measured] for batch, measured in rounds.items()}
    speeds = {
        batch: [sum(request["tokens"] for request in requests) / seconds for requests, seconds in measured]
        for batch, measured in rounds.items()
    }
    good = [batch for batch, share in shares.items() if share >= percent]
    alone = [
        batch for batch, of_rounds in kept.items()
        if min(_percent([both[limit] for each in of_rounds for both in each]) for limit in (0, 1)) >= percent
    ]  # fmt: skip
    every = [batch for batch, of_rounds in kept.items() if min(map(_share, of_rounds)) >= percent]
    best = max(good, key=lambda batch: median(rates[batch]), default=0)
    right = _choose(rates, good)
    ways = {
        "promise-ignored": _choose(rates, list(rates)), "each-limit-alone": _choose(rates, alone),
        "every-round": _choose(rates, every),
        "promise-exceeded": _choose(rates, [batch for batch in good if shares[batch] > percent]),
        "throughput-decides": _choose(speeds, good), "noise-decides": best or None,
        "lucky-round": _choose(rates, good, by=max), "largest": _choose(rates, good, take=max),
        ("lucky-round", "of a smaller batch"): min((b for b in good if max(rates[b]) >= median(rates[best])), default=None),
        "one-accident": min((b for b in good if _quarter(rates[b], 75) >= min(rates[best])), default=None),
        ("one-accident", "of both"): min((b for b in good if max(rates[b]) >= min(rates[best])), default=None),
        **{
            ("fixed-share", share): min(
                (b for b in good if median(rates[b]) >= (1 - share) * median(rates[best])), default=None
            )
            for share in FIXED_SHARES
        },
    }  # fmt: skip
    own_share = shares.get(answer, 0.0) if isinstance(answer, int) else 0.0
    values = {"good": own_share, "percent": percent, "right_good": shares.get(right, 0.0) if right else 0.0}
    return [Case(name, answer, right, ways, values), Case(f"the rounds after the call for {name}", afterwards, rounds)]


def _percent(booleans: list[bool]) -> float:
    return 100 * sum(booleans) / len(booleans)


def _share(kept: list[tuple[bool, bool]]) -> float:
    """Return the percentage of requests that keep both limits."""
    return _percent([all(both) for both in kept])


def _rate(requests: list[Request], seconds: float) -> float:
    return sum(request["tokens"] for request in requests if all(_keeps(request, LIMITS))) / seconds


def _choose(rates: Mapping[int, list[float]], keep: list[int], *, by: Callable = median, take: Callable = min) -> int | None:
    """Return the batch size that is chosen by the middle half of the rounds.

    Every sweep is so clear that any sound rule makes the same choice.
    """
    if not keep:
        return None
    best = max(keep, key=lambda batch: by(rates[batch]))
    return take(batch for batch in keep if _quarter(rates[batch], 75) >= _quarter(rates[best], 25))


def _quarter(values: list[float], percent: float) -> float:
    return sorted(values)[ceil(len(values) * percent / 100) - 1]
