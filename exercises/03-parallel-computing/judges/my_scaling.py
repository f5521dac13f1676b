"""Judges my_scaling.py of 3.7 with points of curves: good scaling, bad scaling, and pure noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpucourse.judge import Case, Part, Way

NAMES = ["bottleneck", "efficiency", "serial", "speedup"]
WAYS = {
    "weak-as-strong": Way(
        "your weak speed-up is T1 / Tn. With weak scaling {workers} workers train {workers} times as many samples in a step: "
        "compare samples per second, not steps",
        ("workers * ideal[1] / step[1]", "alone[1] / step[1]"),
    ),
    "strong-as-weak": Way(
        "your strong speed-up counts {workers} times as many samples as there are: all workers together train the batch of one "
        "worker",
        ('if mode == "strong" else 1.0', "if False else 1.0"),
    ),
    "upside-down": Way(
        "your speed-up is below 1, although the workers are faster: one worker's time belongs in the numerator",
        ("workers * ideal[1] / step[1]", "step[1] / (workers * ideal[1])"),
    ),
    "fastest-against-slowest": Way(
        "you compared the low time of all with the high time of one worker: the best case on one side, the worst on the other. "
        "Use the medians",
        ("workers * ideal[1] / step[1]", "workers * ideal[2] / step[0]"),
    ),
    "share": Way(
        "your efficiency is a share: 0.9 of the perfect speed-up is 90 %", ("100 * speedup / workers", "speedup / workers")
    ),
    "not-by-workers": Way(
        "your efficiency does not divide by the {workers} workers: a perfect speed-up of {workers} is 100 %",
        ("100 * speedup / workers", "100 * speedup"),
    ),
    "missing-share": Way(
        "your serial share is the distance from a perfect speed-up, 1 - S/n. Karp and Flatt: (1/S - 1/n) / (1 - 1/n)",
        ("serial = (1 / speedup - 1 / workers) / (1 - 1 / workers)", "serial = 1 - speedup / workers"),
    ),
    "not-normalised": Way(
        "your serial share leaves out the division by 1 - 1/n: if all work is serial (S = 1) it must be 1",
        (") / (1 - 1 / workers)", ")"),
    ),
    "noise-named": Way(
        "you named {given}, but the measurement cannot show that: the losses are {communication:.3g} ms of communication and "
        "{slower:.3g} ms of slower computing, and the spreads add up to {noise:.3g} ms",
        ("bottleneck if named else None", "bottleneck"),
    ),
    "nearly-equal": Way(
        "you named {given}. Both losses are above the noise of {noise:.3g} ms but differ by less than that, "
        "{communication:.3g} and {slower:.3g} ms: another measurement may show the other loss as larger",
        (" and abs(communication - slower) > noise", ""),
    ),
    "largest-spread": Way(
        "you named {given}, but the noise is more than the largest of the three spreads. Each of the three times may be off "
        "by its own spread, and these add up to {noise:.3g} ms",
        ("noise = sum(", "noise = max("),
    ),
    "whole-spread": Way(
        "you named nothing although {communication:.3g} ms of communication are above {noise:.3g} ms of noise. The spread "
        "of the ideal step is that of one worker's step times the share of B that each worker has now, 1/{workers}",
        ("for times in (ideal, step, silent)", "for times in (alone, step, silent)"),
    ),
    "never-named": Way(
        "you named nothing although {communication:.3g} ms of communication and {slower:.3g} ms of slower computing differ by "
        "more than the noise of {noise:.3g} ms",
        ("bottleneck if named else None", "None"),
    ),
    "swapped": Way(
        "you swapped the two losses. Communication is what AllReduce adds: step - silent. Slower computing is how much "
        "longer the silent step takes than the ideal one",
        ("communication, slower = step", "slower, communication = step"),
    ),
    "whole-batch": Way(
        "your ideal step of strong scaling is one worker's whole step: each worker has only 1/{workers} of the samples now",
        ("silent[1] - ideal[1]\n", "silent[1] - alone[1]\n"),
    ),
}  # fmt: skip
POINTS = (  # mode, workers, alone, step, silent
    ("weak", 2, (9.8, 10.0, 10.3), (13.9, 14.0, 14.3), (10.3, 10.5, 10.6)),
    ("strong", 4, (99.0, 100.0, 102.0), (39.5, 40.0, 40.4), (26.0, 26.2, 26.5)),
    ("strong", 2, (39.0, 40.0, 40.8), (30.1, 30.5, 31.0), (28.8, 29.0, 29.3)),
    ("weak", 8, (20.0, 20.4, 20.9), (41.0, 41.5, 42.0), (39.6, 40.0, 40.2)),
    ("weak", 4, (8.0, 10.0, 14.0), (9.0, 9.6, 13.5), (8.5, 9.9, 12.0)),
    ("strong", 4, (95.0, 100.0, 105.0), (30.5, 31.0, 31.5), (25.0, 25.3, 25.5)),
    ("weak", 3, (9.0, 10.0, 11.0), (14.0, 15.0, 16.0), (10.0, 10.8, 12.0)),
    ("strong", 3, (29.0, 30.0, 31.0), (20.0, 21.0, 22.0), (15.0, 15.8, 16.5)),
    ("weak", 2, (20.0, 20.0, 21.0), (15.0, 16.0, 16.0), (12.0, 13.0, 13.0)),  # a loss that equals the noise, and a gain
)


def judge(part: Part) -> None:
    """Judge the three figures of every point, then the named bottlenecks."""
    take_apart = part.function("take_apart")
    answers = []
    for point in POINTS:
        name = f"{point[0]} scaling, {point[1]} workers, alone {point[2][1]:g} ms, step {point[3][1]:g}, silent {point[4][1]:g}"
        answer = part.call(take_apart, *point, case=name)
        listed = sorted(map(str, answer)) if isinstance(answer, Mapping) else answer
        part.compare([Case(f"the names in what it returns for {name}", listed, NAMES)])
        answers.append((name, answer, point))
    for figure in ("speedup", "efficiency", "serial", "bottleneck"):
        part.compare([_case(figure, *answer) for answer in answers], tolerance=1e-6)
    part.note(f"right for {len(POINTS)} points of curves; four of them show no bottleneck")


def _case(figure: str, name: str, answer: Mapping[str, Any], point: tuple[Any, ...]) -> Case:
    mode, n, alone, step, silent = point
    ratio, strong = alone[1] / step[1], mode == "strong"
    speedup = ratio * (1 if strong else n)
    serial = (1 / speedup - 1 / n) / (1 - 1 / n)
    share = 1 / n if strong else 1.0
    communication, slower = step[1] - silent[1], silent[1] - share * alone[1]
    noise = share * (alone[2] - alone[0]) + (step[2] - step[0]) + (silent[2] - silent[0])
    larger, clear = _name(communication, slower), _name_above(communication, slower, noise) is not None
    spreads = [times[2] - times[0] for times in (alone, step, silent)]
    of_whole = silent[1] - alone[1]
    right = {"speedup": speedup, "efficiency": 100 * speedup / n, "serial": serial, "bottleneck": larger if clear else None}
    ways = {
        "speedup": {
            "weak-as-strong": ratio, "strong-as-weak": ratio * n, "upside-down": 1 / speedup,
            "fastest-against-slowest": alone[2] / step[0] * (1 if strong else n),
        },
        "efficiency": {"share": speedup / n, "not-by-workers": 100 * speedup},
        "serial": {"missing-share": 1 - speedup / n, "not-normalised": serial * (1 - 1 / n)},
        "bottleneck": {
            "never-named": None, "noise-named": larger,
            "nearly-equal": larger if max(communication, slower) > noise else None,
            "largest-spread": _name_above(communication, slower, max(share * spreads[0], *spreads[1:])),
            "whole-spread": _name_above(communication, slower, sum(spreads)),
            "swapped": _name(slower, communication) if clear else None,
            "whole-batch": _name_above(communication, of_whole, noise),
        },
    }  # fmt: skip
    values = {"workers": n, "communication": communication, "slower": slower, "noise": noise}
    if figure == "bottleneck":  # None is an answer, not a missing answer
        answer_text, right_text = _say(answer[figure]), _say(right[figure])
        return Case(
            f"{figure} of {name}", answer_text, right_text, {way: _say(text) for way, text in ways[figure].items()}, values
        )
    return Case(f"{figure} of {name}", answer[figure], right[figure], ways[figure], values)


def _say(bottleneck: Any) -> Any:
    return "none" if bottleneck is None else bottleneck


def _name_above(communication: float, slower: float, noise: float) -> str | None:
    clear = max(communication, slower) > noise and abs(communication - slower) > noise
    return _name(communication, slower) if clear else None


def _name(communication: float, slower: float) -> str:
    return "communication" if communication > slower else "slower computing"
