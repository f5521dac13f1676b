"""Judge my_rate.py of 4.2 with generated runs: cards that heat up, are warm, wake up, or do not settle."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from gpucourse.judge import Case, Part, Verdict, Way

NAMES = ["burst", "percent", "settled_s", "sustained"]
TWICE, BUSY = "a card that slows down twice", "a busy computer"
FIRST_PLATEAU_S = 4.0  # of TWICE
TOLERANCE = 0.03  # of a sustained rate: it may begin a little earlier or later
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
        ("if begin < start + 1]", "if begin < max(1, calls[0][0] + 1e-9)]"),
    ),
    "second-half": Way(
        "you took the second half of the run. This card settled after {settled:.0f} of {length:.0f} s: find the moment in the "
        "times themselves",
        ("if settled_s > length * 2 / 3", "settled_s = length / 2\n    if False"),
    ),
    "whole-run": Way(
        "your sustained rate covers the whole run, although the rate changed until {settled:.0f} s: look for the last "
        "moment at which the times differ from those at the end",
        ("            settled_s = end_s", "            pass"),
    ),
    "first-plateau": Way(
        "you stopped at the first time at which the rate was steady for a while. It changed once more, and was settled only "
        "after {settled:.0f} s",
        (
            "        if inside and abs(median(inside) / final - 1) > CHANGE:\n            settled_s = end_s\n",
            "        following = [took for begin, took in calls if end_s <= begin - start < end_s + length / WINDOWS]\n"
            "        if inside and following and abs(median(inside) / median(following) - 1) > CHANGE:\n"
            "            settled_s = end_s\n        elif settled_s:\n            break\n",
        ),
    ),
    "disturbed": Way(
        "you took a disturbed call for a change of the clock, so your moment is too late, or None. The rate had settled "
        "{settled:.0f} s after the start. A change of the clock lasts for many calls in a row",
        ("abs(median(inside) / final - 1)", "abs(max(inside) / final - 1)"),
        "your settled_s is {moment}, but this rate had settled {settled:.0f} s after the start of a run of {length:.0f} s. "
        "From then on only single calls take longer",
    ),
    "always-settled": Way(
        "the rate of this run still changes in its last third, and where it would settle is unknown: the run has no sustained "
        "rate, and your figure would be too high or too low",
        ("if settled_s > length * 2 / 3:", "settled_s = min(settled_s, length * 2 / 3)\n    if False:"),
    ),
    "mean-of-rates": Way(
        "you took the mean of the calls' rates. That gives fast calls as much weight as slow ones, although they take less of "
        "the time: divide all operations by all seconds",
        ("operations * len(late) / sum(late) / 1e12", "sum(operations / took for took in late) / len(late) / 1e12"),
    ),
    "median-sustained": Way(
        "you took the median time for the sustained rate, as if no call were disturbed. A long training is disturbed, too: "
        "divide all operations by all seconds",
        ("operations * len(late) / sum(late) / 1e12", "operations / median(late) / 1e12"),
    ),
    "with-gaps": Way(
        "you divided by the whole time until the end, but between the calls the program did other work. Divide by the seconds"
        " that the calls took",
        ("len(late) / sum(late)", "len(late) / (start + length - start - settled_s)"),
    ),
    "burst-percent": Way(
        "your percentage is that of the burst. Use the sustained rate, the one to plan with",
        ("100 * sustained", "100 * burst"),
    ),
    "share": Way("your percentage is a share: 0.5 of the peak is 50%", ("100 * sustained", "sustained")),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run of products of m x k and k x n matrices: its calls, the card's peak, and when its rate settled, if it did."""

    name: str
    shape: tuple[int, int, int]
    calls: list[tuple[float, float]]
    peak: float
    settled_s: float | None

    @property
    def tera(self) -> float:
        """Return the operations of a call, in 10¹²."""
        m, k, n = self.shape
        return 2 * m * k * n / 1e12

    @property
    def length_s(self) -> float:
        """Return the seconds from the beginning of the first call to the end of the last."""
        return sum(self.calls[-1]) - self.calls[0][0]

    def list_since(self, seconds: float) -> list[float]:
        """Return the times of the calls that began at least `seconds` after the first call."""
        return [took for began, took in self.calls if began - self.calls[0][0] >= seconds - 1e-9]


def _make_run(
    name: str,
    points: list[tuple[float, float]],
    settled_s: float | None,
    *,
    shape: tuple[int, int, int] = (4096, 4096, 4096),
    peak: float = 65.0,
    call_s: float = 0.03,
    origin: float = 100.0,
    disturbed: float = 0.004,
    gap: float = 0.002,
) -> Run:
    """Return a run. `points` are (seconds, factor): times are `call_s` times the factor, in a straight line between points."""
    chance = random.Random(name)
    calls, now = [], 0.0
    while now < points[-1][0]:
        (start_s, low), (right, high) = next(pair for pair in itertools.pairwise(points) if now < pair[1][0])
        took = call_s * (low + (high - low) * (now - start_s) / (right - start_s)) * chance.uniform(0.97, 1.03)
        took *= chance.uniform(2.0, 3.0) if chance.random() < disturbed else 1.0
        calls.append((origin + now, took))
        now += took * (1 + gap)
    return Run(name, shape, calls, peak, settled_s)


RUNS = (
    _make_run("a card that reaches its power limit", [(0, 1.0), (8, 1.0), (13, 1.75), (60, 1.75)], 12.5),
    _make_run(
        "a card that is warm from the start", [(0, 1.0), (25, 1.0)], 0.0, shape=(1024, 8192, 512), peak=121.0, origin=7.5
    ),
    _make_run("a card that settles late", [(0, 1.0), (16, 1.0), (21, 1.5), (40, 1.5)], 20.5, shape=(300, 100, 700), peak=8.1),
    _make_run(TWICE, [(0, 1.0), (3, 1.0), (FIRST_PLATEAU_S, 1.3), (18, 1.3), (20, 1.8), (50, 1.8)], 19.7),
    _make_run("a card that wakes up", [(0, 2.0), (4, 2.0), (6, 1.0), (40, 1.0)], 5.9, shape=(64, 512, 4096)),
    _make_run(BUSY, [(0, 1.0), (5, 1.0), (8, 1.5), (45, 1.5)], 7.7, disturbed=0.08, origin=3.0),
    _make_run("a program with other work between calls", [(0, 1.0), (6, 1.0), (9, 1.4), (40, 1.4)], 8.7, gap=0.25),
    _make_run("a card that still slows down at the end", [(0, 1.0), (30, 1.8)], None, origin=0.25),
    _make_run("a card that reaches its limit at the end", [(0, 1.0), (32, 1.0), (36, 1.6), (40, 1.6)], None),
)


def judge(part: Part) -> None:
    """Judge the burst of all runs, then when each settled, then the sustained rates and the percentages."""
    rates = part.function("rates")
    answers = []
    for run in RUNS:
        answer = part.call(rates, *run.shape, list(run.calls), run.peak, case=run.name)
        listed = sorted(map(str, answer)) if isinstance(answer, Mapping) else answer
        part.compare([Case(f"the names in the result for {run.name}", listed, NAMES)])
        answers.append(answer)
    pairs = list(zip(RUNS, answers, strict=True))
    part.compare([_burst_case(run, answer) for run, answer in pairs], tolerance=1e-6)
    _judge_moments(part, pairs)
    settled = [(run, answer) for run, answer in pairs if run.settled_s is not None]
    part.compare([_sustained_case(run, answer) for run, answer in settled], tolerance=TOLERANCE)
    part.compare([_percent_case(run, answer) for run, answer in settled], tolerance=1e-6)
    part.note(f"right for {len(RUNS)} runs, of which {len(RUNS) - len(settled)} have no sustained rate")


def _judge_moments(part: Part, pairs: list[tuple[Run, Mapping[str, Any]]]) -> None:
    """Check when each run settled. Raises Verdict."""
    late: list[Run] = []
    for run, answer in pairs:
        moment = answer["settled_s"]
        if moment is not None and not (isinstance(moment, int | float) and math.isfinite(moment)):
            raise Verdict("failed", "moment", f"your settled_s is {moment!r:.40}: it has to be a number or None", run.name)
        if run.settled_s is None:
            continue
        if moment is None or moment - run.settled_s > run.length_s / 10:
            late.append(run)
        elif run.settled_s - moment > run.length_s / 10:
            way = "whole-run" if moment < 0.02 * run.length_s else "first-plateau" if _is_first_plateau(run, moment) else None
            if way:
                raise part.wrong(way, run.name, settled=run.settled_s)
            says = f"your settled_s is {moment:.1f}; the rate changed until {run.settled_s:.1f} of {run.length_s:.0f} s"
            raise Verdict("failed", "moment", says, run.name)
    if late:
        is_half = [abs((answer["settled_s"] or 0) - run.length_s / 2) < 0.02 * run.length_s for run, answer in pairs]
        if all(is_half):
            raise part.wrong("second-half", late[0].name, settled=late[0].settled_s, length=late[0].length_s)
        run = next((run for run in late if run.name == BUSY), late[0])
        moments = {run.name: answer["settled_s"] for run, answer in pairs}
        given = moments[run.name]
        says = "None" if given is None else f"{given:.1f}"
        tenths = [None if moments[run.name] is None else round(10 * moments[run.name] / run.length_s) for run in RUNS]
        raise part.wrong("disturbed", run.name, output=tenths, moment=says, settled=run.settled_s, length=run.length_s)
    for run, answer in pairs:
        _check_unsettled(part, run, answer)


def _is_first_plateau(run: Run, moment: float) -> bool:
    """Return whether a run that slows down twice was steady for the first time at about this moment.

    False for all other runs.
    """
    return run.name == TWICE and abs(moment - FIRST_PLATEAU_S) < run.length_s / 10


def _check_unsettled(part: Part, run: Run, answer: Mapping[str, Any]) -> None:
    if run.settled_s is None and any(answer[name] is not None for name in ("settled_s", "sustained", "percent")):
        raise part.wrong("always-settled", run.name)


def _burst_case(run: Run, answer: Mapping[str, Any]) -> Case:
    m, k, n = run.shape
    start = run.calls[0][0]
    early = [took for began, took in run.calls if began < start + 1]
    of_clock = [took for began, took in run.calls if began < max(1, start + 1e-9)]
    right = run.tera / median(early)
    ways = {
        "one-operation": right / 2, "square": right * m * m / (k * n), "fastest-call": run.tera / min(early),
        "mean-of-times": run.tera / fmean(early), "clock-from-zero": run.tera / median(of_clock),
    }  # fmt: skip
    return Case(f"burst of {run.name}", answer["burst"], right, ways, {"m": m, "k": k, "n": n})


def _sustained_case(run: Run, answer: Mapping[str, Any]) -> Case:
    late = run.list_since(answer["settled_s"])
    ways = {
        "mean-of-rates": fmean(run.tera / took for took in late), "median-sustained": run.tera / median(late),
        "with-gaps": run.tera * len(late) / (run.length_s - answer["settled_s"]),
    }  # fmt: skip
    right = run.tera * len(late) / sum(late)
    return Case(f"sustained rate of {run.name}", answer["sustained"], right, ways)


def _percent_case(run: Run, answer: Mapping[str, Any]) -> Case:
    right = 100 * answer["sustained"] / run.peak
    ways = {"burst-percent": 100 * answer["burst"] / run.peak, "share": right / 100}
    return Case(f"percent of {run.name}", answer["percent"], right, ways)
