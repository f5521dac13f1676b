"""Judges my_latency.py of 4.3: percentiles of short and long lists, requests with one token and with many, noisy sweeps."""

from __future__ import annotations

import random
from collections.abc import Callable
from math import ceil, floor
from statistics import fmean, median
from typing import Any

from gpucourse.judge import Case, Part, Way

Rates = dict[int, list[float]]  # by batch size
Sweep = tuple[Rates, Rates, float]

WAYS = {
    "unsorted": Way(
        "you counted to a place in the unsorted list: sort the values first",
        ("sorted(values)[", "list(values)["),
    ),
    "rank-too-high": Way(
        "your value is one place too high: of {n} values, rank {rank} is the first at which {percent:g}% are as small or "
        "smaller. Indexes of a list begin at 0",
        ("ceil(len(values) * percent / 100) - 1", "min(ceil(len(values) * percent / 100), len(values) - 1)"),
    ),
    "rounded-down": Way(
        "you rounded the rank down: then fewer than {percent:g}% of the {n} values are at most as large as yours. Round up",
        ("ceil(len(values) * percent / 100) - 1", "max(int(len(values) * percent / 100), 1) - 1"),
    ),
    "interpolated": Way(
        "you interpolated between two values: no request took that long. The nearest rank gives a value that was measured",
        (
            "return sorted(values)[ceil(len(values) * percent / 100) - 1]",
            "place = (len(values) - 1) * percent / 100\n"
            "    low = int(place)\n"
            "    high = sorted(values)[min(low + 1, len(values) - 1)]\n"
            "    return sorted(values)[low] + (high - sorted(values)[low]) * (place - low)",
        ),
    ),
    "all-tokens": Way(
        "your TPOT divides by all {tokens} tokens: there are {gaps} gaps between them. The wait for the first one is TTFT",
        ("* 1000 / gaps", "* 1000 / len(arrived_s)"),
    ),
    "with-ttft": Way(
        "your TPOT contains the wait for the first token: count from its arrival, not from when the request was sent",
        ("(last - first) * 1000", "(last - sent_s) * 1000"),
    ),
    "whole-answer": Way(
        "your TTFT is the time of the whole answer: it ends with the first token", ("(first - sent_s)", "(last - sent_s)")
    ),
    "seconds": Way("your times are in seconds: milliseconds were asked for", (
        "return (first - sent_s) * 1000, (last - first) * 1000", "return first - sent_s, (last - first)")),
    "limit-ignored": Way(
        "batch size {given} is faster but exceeds the limit: its TPOT has a p99 of {p99:.1f} ms, and {limit:g} are allowed",
        ("if percentile(tpots_ms[batch], 99) <= limit_ms]", "]"),
    ),
    "limit-by-the-median": Way(
        "batch size {given} is within the limit for the median only: the p99 of its TPOT is {p99:.1f} ms, and {limit:g} "
        "are allowed",
        ("percentile(tpots_ms[batch], 99)", "percentile(tpots_ms[batch], 50)"),
    ),
    "below-the-limit": Way(
        "a p99 of exactly the limit is within it: at most {limit:g} ms are allowed", ("<= limit_ms", "< limit_ms")
    ),
    "noise-decides": Way(
        "you took the highest median, {given}. The rounds of {right} differ from its rounds by no more than rounds of one "
        "batch size do, so this measurement cannot tell them apart, and the smaller one makes its requests wait less",
        (
            "return min(batch for batch in batches if percentile(rounds[batch], 75) >= slow_round)",
            "return fastest",
        ),
    ),
    "lucky-round": Way(
        "you took the batch size with the fastest single round: then an outlier decides. Compare the medians",
        ("key=lambda batch: median(rounds[batch])", "key=lambda batch: max(rounds[batch])"),
    ),
    "one-accident": Way(
        "one round of {right} was slow by accident, and its other rounds are all faster than those of {given}: the extreme "
        "rounds say nothing about a typical one",
        ("percentile(rounds[fastest], 25)", "min(rounds[fastest])"),
    ),
    "fixed-share": Way(
        "{given} is slower than {right} in every round. A fixed share of the highest speed is not what this measurement can "
        "tell: here rounds of one batch size hardly differ",
        ("percentile(rounds[batch], 75) >= slow_round", "median(rounds[batch]) >= 0.95 * median(rounds[fastest])"),
    ),
    "largest": Way(
        "several batch sizes are equally good, and you took the largest of them: with the smallest, requests wait less",
        ("return min(batch for", "return max(batch for"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the percentiles, then the times of requests, then the choice, which uses the percentiles."""
    percentile, latencies = part.function("percentile"), part.function("latencies")
    choose_batch = part.function("choose_batch")
    cases: list[Case] = []
    for inputs in _percentile_inputs():  # compared first: a rank that is too high is named before it raises IndexError
        cases += _percentile(part, percentile, *inputs)
        part.compare(cases)
    for place, figure in enumerate(("TTFT", "TPOT")):
        part.compare([_latency(part, latencies, place, figure, *request) for request in _requests()], tolerance=1e-6)
    part.compare([_choice(part, choose_batch, name, *sweep) for name, sweep in SWEEPS.items()])
    part.note(f"right for {len(_percentile_inputs())} percentiles, {len(_requests())} requests, {len(SWEEPS)} sweeps")


def _percentile_inputs() -> list[tuple[list[float], float]]:
    chance = random.Random(11)
    values = [round(chance.uniform(5, 90), 3) for _ in range(137)]
    return [(values, 99.0), (values, 50.0), (values[:10], 90.0), (values[:10], 91.0), (values[:7], 20.0), (values[:1], 99.0),
            (values[:100], 100.0)]  # fmt: skip


def _percentile(part: Part, percentile: Callable[..., float], values: list[float], percent: float) -> list[Case]:
    ordered, n, rank = sorted(values), len(values), ceil(len(values) * percent / 100)
    place = (n - 1) * percent / 100
    between = ordered[floor(place)] + (ordered[min(floor(place) + 1, n - 1)] - ordered[floor(place)]) * (place % 1)
    ways = {"unsorted": values[rank - 1], "rank-too-high": ordered[min(rank, n - 1)],
            "rounded-down": ordered[max(int(n * percent / 100), 1) - 1], "interpolated": between}  # fmt: skip
    name = f"percentile {percent:g} of {n} values"
    afterwards = list(values)
    answer = part.call(percentile, afterwards, percent, case=name)
    return [
        Case(name, answer, ordered[rank - 1], ways, {"n": n, "rank": rank, "percent": percent}),
        Case(f"the list of values after the call for {name}", afterwards, values),
    ]


def _requests() -> list[tuple[float, list[float]]]:
    return [(10.0, [10.05 + 0.02 * token for token in range(101)]), (0.5, [0.75, 0.8, 1.0]), (3.0, [3.4]),
            (7.25, [7.5, 7.75])]  # fmt: skip


def _latency(part: Part, latencies: Callable[..., Any], place: int, figure: str, sent_s: float, arrived: list[float]) -> Case:
    name = f"{figure} of a request with {len(arrived)} tokens"
    answer = part.call(latencies, sent_s, list(arrived), case=name)
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        return Case(name, answer, "a pair, TTFT and TPOT")
    first, last, gaps = arrived[0], arrived[-1], len(arrived) - 1
    right = ((first - sent_s) * 1e3, (last - first) * 1e3 / gaps if gaps else None)[place]
    tpot_ways = {} if not gaps else {"all-tokens": right * gaps / len(arrived), "with-ttft": (last - sent_s) * 1e3 / gaps}
    ways = {"whole-answer": (last - sent_s) * 1e3} if place == 0 else tpot_ways
    if right is not None:
        ways["seconds"] = right / 1e3
    return Case(name, answer[place], right, ways, {"tokens": len(arrived), "gaps": gaps})


def _tpots(typical: float, slowest: float) -> list[float]:
    """Return the TPOT of 200 requests. Four are slow, so the 99th percentile is `slowest`; the median is close to `typical`."""
    return [slowest if number % 50 == 7 else typical - 0.01 * (number % 5) for number in range(200)]


def _rounds(typical: float, percent: float, accident: float | None = None) -> list[float]:
    """Return seven rounds within `percent` of the typical one, which is their median. With `accident`, the fastest or the
    slowest of them has this speed instead."""
    rounds = [typical * (1 + percent / 100 * step / 3) for step in (3, -2, 0, 1, -3, 2, -1)]
    if accident is not None:
        rounds[0 if accident > typical else 4] = accident
    return rounds


SWEEPS: dict[str, Sweep] = {
    "a sweep whose largest batch is too slow": (
        {1: _rounds(119, 1), 4: _rounds(405, 1), 8: _rounds(700, 1), 16: _rounds(905, 1)},
        {1: _tpots(8, 9), 4: _tpots(10, 12), 8: _tpots(12, 18), 16: _tpots(19, 70)}, 25.0,
    ),
    "a sweep in which three batch sizes cannot be told apart": (
        {16: _rounds(660, 2), 32: _rounds(657, 2), 8: _rounds(655, 2), 2: _rounds(201, 1)},
        {2: _tpots(9, 10), 8: _tpots(12, 14), 16: _tpots(20, 22), 32: _tpots(30, 33)}, 40.0,
    ),
    "a sweep with one lucky round": (
        {32: _rounds(605, 1, 790), 16: _rounds(725, 0.5), 4: _rounds(402, 0.5), 8: _rounds(604, 0.5)},
        {4: _tpots(9, 10), 8: _tpots(12, 15), 16: _tpots(20, 50), 32: _tpots(30, 40)}, 50.0,
    ),
    "a sweep with one slow round": (
        {8: _rounds(640, 0.5), 16: _rounds(700, 0.5, 420), 4: _rounds(400, 0.5)},
        {4: _tpots(9, 10), 8: _tpots(12, 15), 16: _tpots(20, 25)}, 50.0,
    ),
    "a sweep with a small and certain difference": (
        {8: _rounds(640, 0.2), 16: _rounds(660, 0.2), 4: _rounds(400, 0.2)},
        {4: _tpots(9, 10), 8: _tpots(12, 15), 16: _tpots(20, 25)}, 50.0,
    ),
    "a sweep in which nothing is within the limit": ({1: [50.0], 2: [90.0]}, {1: _tpots(20, 30), 2: _tpots(22, 40)}, 10.0),
    "a sweep whose fastest batch size is beyond the limit": (
        {4: _rounds(405, 1), 8: _rounds(407, 1), 16: _rounds(905, 1)},
        {4: _tpots(9, 10), 8: _tpots(12, 14), 16: _tpots(20, 70)}, 40.0,
    ),
    "a sweep whose smallest batch size is as fast, but beyond the limit": (
        {2: _rounds(652, 1), 8: _rounds(651, 1.5), 16: _rounds(656, 1.5)},
        {2: _tpots(20, 70), 8: _tpots(12, 14), 16: _tpots(20, 22)}, 40.0,
    ),
    "a sweep with one batch size": ({64: [1000.0, 400.0]}, {64: [49.0]}, 49.0),
}  # fmt: skip


def _choice(part: Part, choose_batch: Callable[..., Any], name: str, rounds: Rates, tpots: Rates, limit: float) -> Case:
    tails = {batch: sorted(times)[ceil(len(times) * 0.99) - 1] for batch, times in tpots.items()}
    answer = part.call(choose_batch, {b: list(s) for b, s in rounds.items()}, {b: list(t) for b, t in tpots.items()}, limit,
                      case=name)  # fmt: skip
    keep = [batch for batch, tail in tails.items() if tail <= limit]
    half = [batch for batch, times in tpots.items() if sorted(times)[ceil(len(times) * 0.5) - 1] <= limit]
    strict = [batch for batch, tail in tails.items() if tail < limit]
    fastest = max(keep, key=lambda batch: median(rounds[batch]), default=0)
    ways = {
        "limit-ignored": _choose(rounds, list(rounds)), "limit-by-the-median": _choose(rounds, half),
        "below-the-limit": _choose(rounds, strict), "noise-decides": fastest or None,
        "lucky-round": _choose(rounds, keep, by=max), "largest": _choose(rounds, keep, take=max),
        "one-accident": min((b for b in keep if max(rounds[b]) >= min(rounds[fastest])), default=None),
        "fixed-share": min((b for b in keep if median(rounds[b]) >= 0.95 * median(rounds[fastest])), default=None),
    }  # fmt: skip
    values = {"p99": tails.get(answer, fmean(tails.values())) if isinstance(answer, int) else 0.0, "limit": limit}
    return Case(name, answer, _choose(rounds, keep), ways, values)


def _choose(rounds: dict[int, list[float]], keep: list[int], *, by: Callable = median, take: Callable = min) -> int | None:
    """Return the choice by the middle half of the rounds. Every sweep is so clear that any sound rule makes the same."""
    if not keep:
        return None
    fastest = max(keep, key=lambda batch: by(rounds[batch]))
    return take(batch for batch in keep if _quarter(rounds[batch], 75) >= _quarter(rounds[fastest], 25))


def _quarter(values: list[float], percent: float) -> float:
    return sorted(values)[ceil(len(values) * percent / 100) - 1]
