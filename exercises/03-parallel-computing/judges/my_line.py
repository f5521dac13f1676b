"""Judge my_line.py of 3.3 on artificial sweeps with a known latency and bandwidth, and with disturbed calls and sizes."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "mean": Way(
        "the latency is {latency:.0f} µs instead of {right_latency:.0f}: you took the mean of all calls of a size, and one "
        "call that took 20 times as long moves it. Take a number that a few slow calls do not move",
        ("median(seconds) for", "sum(seconds) / len(seconds) for"),
    ),
    "largest-decides": Way(
        "the latency is {latency:.0f} µs instead of {right_latency:.0f}: your line has the least error in seconds, and one "
        "percent of the largest tensor's time is more than the whole time of a small one. The small tensors show the latency: "
        "let them count as much as the large ones",
        ("size: 1 / time**2 for", "size: 1.0 for"),
    ),
    "disturbed-size": Way(
        "the latency is {latency:.0f} µs instead of {right_latency:.0f}, and the bandwidth {speed:.3f} GB/s instead of "
        "{right_speed:.3f}: you fitted the line to every size. For some size all calls were disturbed, so that none of them "
        "is right: compare each size with the line through the others",
        ("range(len(points) // 4)", "range(0)"),
    ),
    "two-ends": Way(
        "latency and bandwidth follow from the smallest and the largest size alone, and each of the two may be disturbed: let "
        "all sizes count",
        (
            "    bandwidth = 1 / per_byte\n",
            "    latency, bandwidth = median(times[min(times)]), max(times) / median(times[max(times)])\n",
        ),
    ),
    "seconds-per-byte": Way(
        "you returned the seconds per byte; the bandwidth is the reciprocal, bytes per second",
        ("return latency, bandwidth, plateau", "return latency, 1 / bandwidth, plateau"),
    ),
    "other-unit": Way(
        "latency and bandwidth are right, but in the wrong unit: return seconds and bytes per second",
        ("return latency, bandwidth, plateau", "return 1e6 * latency, bandwidth / 1e9, plateau"),
    ),
    "half-speed": Way(
        "latency and bandwidth are right. The plateau begins at {plateau} bytes in your result, and should begin at "
        "{right_plateau}: at your size a call gets half of the bandwidth, and the plateau needs 90 % of it",
        ("size >= 9 * latency", "size >= latency"),
    ),
    "never-none": Way(
        "latency and bandwidth are right. No size here gets 90 % of the bandwidth, so the sweep ended before the plateau: "
        "return None, and not the largest size",
        ("default=None", "default=max(times)"),
    ),
}

NEAR = 1e-3  # relative: the same computation in another order
LATENCY_TOLERANCE, BANDWIDTH_TOLERANCE = 0.1, 0.05


class Curve(NamedTuple):
    """An artificial sweep: latency in s, bandwidth in bytes/s, the smallest size, the factor between sizes, disturbed sizes."""

    latency: float
    bandwidth: float
    smallest: int
    factor: int
    count: int
    disturbed: tuple[int, ...]

    @property
    def sizes(self) -> list[int]:
        """Return the sizes in bytes."""
        return [self.smallest * self.factor**power for power in range(self.count)]

    @property
    def answer(self) -> Answer:
        """Return the right answer."""
        plateau = min((size for size in self.sizes if size >= 9 * self.latency * self.bandwidth), default=None)
        return Answer(self.latency, self.bandwidth, plateau)


class Answer(NamedTuple):
    """The result that the part has to return."""

    latency: float
    bandwidth: float
    plateau: int | None


CURVES = {
    "a slow network": Curve(150e-6, 1.1e9, 1024, 4, 9, (3,)),
    "a fast link, two sizes disturbed": Curve(20e-6, 40e9, 1024, 4, 11, (1, 6)),
    "a sweep that ends early": Curve(400e-6, 2e9, 256, 4, 8, (7,)),
    "the largest size disturbed": Curve(60e-6, 3e9, 4096, 2, 15, (14, 13)),
    "the smallest size disturbed": Curve(90e-6, 0.6e9, 512, 4, 10, (0,)),
    "the plateau disturbed": Curve(35e-6, 12e9, 1024, 4, 10, (6, 7)),
    "no size disturbed": Curve(250e-6, 5e9, 4096, 4, 8, ()),
}


def judge(part: Part) -> None:
    """Judge every curve. A mistake is named if it explains the results of all failures."""
    read_curve = part.function("read_curve")
    failures: list[tuple[str, Curve, Answer, list[tuple[int, float]]]] = []
    for number, (name, curve) in enumerate(CURVES.items()):
        samples = make_samples(curve, number)
        answer = _read_answer(part.call(read_curve, list(samples), case=name), name)
        if not _is_right(answer, curve.answer):
            failures.append((name, curve, answer, samples))
    if failures:
        raise _explain(part, failures)
    part.note(f"right for {len(CURVES)} sweeps, with slow calls and disturbed sizes; one ends before its plateau")


def make_samples(curve: Curve, seed: int) -> list[tuple[int, float]]:
    """Return the calls of a sweep, with a few percent of noise. One call in seven is delayed, and so is every call of a
    disturbed size."""
    chance = random.Random(seed)
    samples = []
    for number, size in enumerate(curve.sizes):
        for _ in range(21):
            seconds = (curve.latency + size / curve.bandwidth) * chance.gauss(1.0, 0.02)
            if number in curve.disturbed:
                seconds *= chance.uniform(2.0, 3.0)
            elif chance.random() < 1 / 7:
                seconds *= chance.uniform(2.0, 20.0)
            samples.append((size, seconds))
    chance.shuffle(samples)
    return samples


def _read_answer(answer: Any, name: str) -> Answer:
    numbers = list(answer) if isinstance(answer, (tuple, list)) else []
    is_number = [isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers]
    if len(numbers) != 3 or not all(is_number[:2]) or not (is_number[2] or numbers[2] is None):
        text = f"it returned {answer!r:.80}; three values are needed: latency, bandwidth, and a size or None"
        raise Verdict("failed", "other", text, name)
    return Answer(*numbers)


def _is_right(answer: Answer, right: Answer) -> bool:
    return (
        abs(answer.latency / right.latency - 1) <= LATENCY_TOLERANCE
        and abs(answer.bandwidth / right.bandwidth - 1) <= BANDWIDTH_TOLERANCE
        and answer.plateau == right.plateau
    )


def _is_near(answer: Answer, other: Answer) -> bool:
    """Return whether two lines have about the same latency and bandwidth. The plateau follows from the line."""
    pairs = zip(answer[:2], other[:2], strict=True)
    return all(abs(value - reference) <= NEAR * abs(reference) for value, reference in pairs)


def _explain(part: Part, failures: list[tuple[str, Curve, Answer, list[tuple[int, float]]]]) -> Verdict:
    """Return the verdict on wrong results: the mistake that explains all of them, or the difference in the first result."""
    name, curve, answer, _ = failures[0]
    right = curve.answer
    values = {
        "latency": 1e6 * answer.latency, "right_latency": 1e6 * right.latency, "speed": answer.bandwidth / 1e9,
        "right_speed": right.bandwidth / 1e9, "plateau": answer.plateau, "right_plateau": right.plateau,
    }  # fmt: skip
    for way, compute in _COMPUTED:
        if all(_is_near(result, compute(samples)) for _, _, result, samples in failures):
            return part.wrong(way, name, **values)
    explanations = {way: all(_is_right(correct(result, case), case.answer) for _, case, result, _ in failures)
               for way, correct in _CORRECTIONS.items()}  # fmt: skip
    if way := next((way for way, explains in explanations.items() if explains), None):
        return part.wrong(way, name, **values)
    text = (
        "latency {latency:.1f} µs (right: {right_latency:.1f}), bandwidth {speed:.3f} GB/s (right: {right_speed:.3f}), plateau "
        "from {plateau} bytes (right: {right_plateau})"
    ).format_map(values)
    return Verdict("failed", "other", text, name)


def _compute(
    samples: list[tuple[int, float]],
    *,
    middle: Callable[[list[float]], float] = statistics.median,
    power: int = 2,
    removed: float = 0.25,
) -> Answer:
    """Return the line that is fitted to the samples. Each mistake is a set of keyword arguments."""
    times: dict[int, list[float]] = {}
    for size, seconds in samples:
        times.setdefault(size, []).append(seconds)
    points = {size: middle(seconds) for size, seconds in times.items()}
    latency, per_byte = _fit(points, power)
    for _ in range(int(len(points) * removed)):
        errors = {size: abs(time / (latency + per_byte * size) - 1) for size, time in points.items()}
        outlier = max(errors, key=lambda size: errors[size])
        remaining = {size: time for size, time in points.items() if size != outlier}
        if errors[outlier] > 0.15 and min(_fit(remaining, power)) > 0:
            points = remaining
            latency, per_byte = _fit(points, power)
    return _with_plateau(latency, 1 / per_byte, sorted(times))


def _with_plateau(latency: float, bandwidth: float, sizes: list[int]) -> Answer:
    return Answer(latency, bandwidth, min((size for size in sizes if size >= 9 * latency * bandwidth), default=None))


def _fit(points: dict[int, float], power: int) -> tuple[float, float]:
    weights = {size: time**-power for size, time in points.items()}
    total = sum(weights.values())
    mean_size = sum(weights[size] * size for size in points) / total
    mean_time = sum(weights[size] * time for size, time in points.items()) / total
    spread = sum(weights[size] * (size - mean_size) ** 2 for size in points)
    per_byte = sum(weights[size] * (size - mean_size) * (time - mean_time) for size, time in points.items()) / spread
    return mean_time - per_byte * mean_size, per_byte


def _take_ends(samples: list[tuple[int, float]], *, joined: bool = False) -> Answer:
    """Return the result of using only the smallest and the largest size: the time of the first and the bytes per second of the
    second or, if `joined`, the line through both."""
    times: dict[int, list[float]] = {}
    for size, seconds in samples:
        times.setdefault(size, []).append(seconds)
    smallest, largest = min(times), max(times)
    latency, longest = statistics.median(times[smallest]), statistics.median(times[largest])
    bandwidth = (largest - smallest) / (longest - latency) if joined else largest / longest
    latency -= smallest / bandwidth if joined else 0.0
    return _with_plateau(latency, bandwidth, sorted(times))


_COMPUTED: tuple[tuple[str, Callable[[list[tuple[int, float]]], Answer]], ...] = (
    ("mean", lambda samples: _compute(samples, middle=statistics.fmean)),
    ("mean", lambda samples: _compute(samples, middle=statistics.fmean, removed=0.0)),
    ("largest-decides", lambda samples: _compute(samples, power=0)),
    ("largest-decides", lambda samples: _compute(samples, power=0, removed=0.0)),  # ordinary least squares
    ("largest-decides", lambda samples: _compute(samples, power=0, removed=0.0, middle=statistics.fmean)),  # also of all calls
    ("largest-decides", lambda samples: _compute(samples, power=0, removed=0.0, middle=min)),
    ("disturbed-size", lambda samples: _compute(samples, removed=0.0)),
    ("disturbed-size", lambda samples: _compute(samples, removed=0.0, middle=min)),
    ("two-ends", _take_ends),
    ("two-ends", lambda samples: _take_ends(samples, joined=True)),
)
_CORRECTIONS: dict[str, Callable[[Answer, Curve], Answer]] = {  # each turns a wrong result into the right one
    "seconds-per-byte": lambda answer, _: answer._replace(bandwidth=1 / answer.bandwidth) if answer.bandwidth else answer,
    "other-unit": lambda answer, _: answer._replace(latency=answer.latency / 1e6, bandwidth=answer.bandwidth * 1e9),
    "half-speed": lambda answer, curve: answer._replace(
        plateau=curve.answer.plateau
        if answer.plateau == min((s for s in curve.sizes if s >= curve.latency * curve.bandwidth), default=None)
        else -1
    ),
    "never-none": lambda answer, curve: answer._replace(
        plateau=None if curve.answer.plateau is None and answer.plateau == curve.sizes[-1] else answer.plateau
    ),
}
