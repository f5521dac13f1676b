"""Judges my_rate.py of 4.2 with the runs of a card that heats up: fast at first, slower at its power limit, with outliers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean, median

from gpucourse.judge import Case, Part, Way

NAMES = ["burst", "percent", "sustained"]
WAYS = {
    "one-operation": Way(
        "your rates are half: each of the m·n results takes k multiplications and k additions, 2·m·k·n operations in all",
        ("2 * m * k * n", "m * k * n"),
    ),
    "square": Way(
        "you counted 2·m³: that is right for square matrices only. Here each of the {m}·{n} results takes {k} multiply-adds",
        ("2 * m * k * n", "2 * m**3"),
    ),
    "fastest-call": Way(
        "your burst is the fastest call alone: one lucky time, or a clock that was read too early. Take the median",
        ("median(early)", "min(early)"),
    ),
    "mean-of-times": Way(
        "your burst is based on the mean of the times, which a single outlier moves. Take their median",
        ("operations / median(early)", "operations / (sum(early) / len(early))"),
    ),
    "clock-from-zero": Way(
        "your burst uses the wrong calls: the clock was not zero when the run began, so the first second ends 1 s after the "
        "first call began",
        ("if begin < start + 1", "if begin < max(1, calls[0][0] + 1e-9)"),
    ),
    "whole-run": Way(
        "your sustained rate covers the whole run, with the burst: a card that was cool at first looks faster than it stays",
        ("if begin >= middle", "if begin >= start"),
    ),
    "half-of-the-calls": Way(
        "you took the second half of the calls, not of the time. Calls are faster while the card is cool, so half of the "
        "calls are over before half of the time is: your figure contains part of the burst",
        ("[took for begin, took in calls if begin >= middle]", "[took for begin, took in calls][len(calls) // 2 :]"),
    ),
    "mean-of-rates": Way(
        "you took the mean of the calls' rates. That gives fast calls as much weight as slow ones, although they take less of "
        "the time: divide all operations by all seconds",
        ("operations * len(late) / sum(late) / 1e12", "sum(operations / took for took in late) / len(late) / 1e12"),
    ),
    "with-gaps": Way(
        "you divided by all of the time from the middle to the end: between the calls the program did something else. Divide "
        "by the seconds that the calls took",
        ("len(late) / sum(late)", "len(late) / (last_began + last_took - middle)"),
    ),
    "burst-percent": Way(
        "your percentage is that of the burst. Use the sustained rate, the one to plan with",
        ("100 * sustained", "100 * operations / median(early) / 1e12"),
    ),
    "share": Way("your percentage is a share: 0.5 of the peak is 50%", ("100 * sustained", "sustained")),
}


def _run(origin: float, phases: list[tuple[int, float]], every: int, slower: float) -> list[tuple[float, float]]:
    """Return calls without gaps, in `phases` of (count, seconds). One call in `every` takes `slower` times as long."""
    calls, now = [], origin
    for count, seconds in phases:
        for number in range(count):
            took = seconds * (slower if number % every == every - 1 else 1 - 0.01 * (number % 3))
            calls.append((now, took))
            now += took + 1e-4
    return calls


INPUTS = (  # m, k, n, calls, peak
    (4096, 4096, 4096, _run(100.0, [(600, 3.3e-3), (400, 5.7e-3)], 9, 1.6), 65.0),
    (1024, 8192, 512, _run(7.5, [(9, 0.12), (40, 0.21)], 4, 2.0), 121.0),
    (300, 100, 700, _run(0.25, [(25, 0.05), (9, 0.3)], 5, 1.5), 8.1),
    (64, 32, 16, [(3.0, 0.4), (3.5, 0.3)], 1.0),
    # One call begins exactly 1 s after the first, and another exactly in the middle. Floats represent these times exactly.
    (512, 256, 128, [(2.0, 0.25), (2.5, 0.375), (3.0, 0.5), (5.0, 0.75), (6.0, 0.625), (7.0, 1.0)], 2.0),
)


def judge(part: Part) -> None:
    """Judge five runs: first the burst, then the sustained rate, then its percentage."""
    rates = part.function("rates")
    answers = []
    for m, k, n, calls, peak in INPUTS:
        name = f"{len(calls)} products of {m} x {k} by {k} x {n}"
        answer = part.call(rates, m, k, n, list(calls), peak, case=name)
        listed = sorted(map(str, answer)) if isinstance(answer, Mapping) else answer
        part.compare([Case(f"the names in the result for {name}", listed, NAMES)])
        answers.append((name, answer))
    for figure in ("burst", "sustained", "percent"):
        part.compare([_case(figure, name, answer, inputs) for (name, answer), inputs in zip(answers, INPUTS, strict=True)],
                     tolerance=1e-6)  # fmt: skip
    first = answers[0][1]
    part.note(f"right for {len(INPUTS)} runs; the first: {first['burst']:.0f} TFLOP/s in the burst, {first['sustained']:.0f} "
              "sustained")  # fmt: skip


def _case(figure: str, name: str, answer: Mapping[str, float], inputs: tuple[int, int, int, list, float]) -> Case:
    m, k, n, calls, peak = inputs
    start, tera = calls[0][0], 2 * m * k * n / 1e12
    middle = (start + sum(calls[-1])) / 2
    early = [took for begin, took in calls if begin < start + 1]
    of_clock = [took for begin, took in calls if begin < max(1, start + 1e-9)]
    late = [took for begin, took in calls if begin >= middle]
    half = [took for _, took in calls][len(calls) // 2 :]
    every = [took for _, took in calls]
    burst, sustained = tera / median(early), len(late) * tera / sum(late)
    right = {"burst": burst, "sustained": sustained, "percent": 100 * sustained / peak}[figure]
    ways = {
        "burst": {
            "one-operation": right / 2, "square": right * m * m / (k * n), "fastest-call": tera / min(early),
            "mean-of-times": tera / fmean(early), "clock-from-zero": tera / median(of_clock),
        },
        "sustained": {
            "whole-run": len(calls) * tera / sum(every), "half-of-the-calls": len(half) * tera / sum(half),
            "mean-of-rates": fmean(tera / took for took in late), "with-gaps": len(late) * tera / (sum(calls[-1]) - middle),
        },
        "percent": {"burst-percent": 100 * burst / peak, "share": right / 100},
    }[figure]  # fmt: skip
    return Case(f"{figure} of {name}", answer[figure], right, ways, {"m": m, "k": k, "n": n})
