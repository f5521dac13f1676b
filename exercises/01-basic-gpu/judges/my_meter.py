"""Judge my_meter.py of 1.3 on recordings with uneven intervals and gaps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gpucourse.judge import Case, Part, Way

KEYS = ("energy_j", "mean_power_w", "utilisation_percent")
WAYS = {
    "mean-times-time": Way(
        "this is the mean of all samples times the duration. But the samples are not evenly spaced: when the monitor was "
        "late, a sample describes a longer time than the others",
        (
            "(end - start) * (low + high) / 2",
            "sum(power for _, power in readings) / len(readings) * (readings[-1][0] - readings[0][0]) / (len(readings) - 1)",
        ),
    ),
    "each-until-the-next": Way(
        "you assumed that each power lasts until the next sample: that is too little while power rises, and too much while it "
        "falls. Between two readings, power changes evenly",
        ("(low + high) / 2", "low"),
    ),
    "each-since-the-last": Way(
        "you assumed that each power began at the sample before it: that is too much while power rises, and too little while "
        "it falls. Between two readings, power changes evenly",
        ("(low + high) / 2", "high"),
    ),
    "milliseconds": Way(
        "the energy is a thousand times too large: the times are in milliseconds, and a joule is a watt times a second",
        ("(sample.at_ms / 1e3, sample.power_w)", "(sample.at_ms, sample.power_w)"),
    ),
    "watt-hours": Way(
        "the energy is 3,600 times too small: it is in watt-hours, but has to be in joules",
        (
            "energy = 0.0\n",
            "energy = 0.0\n    readings = [(at / 3600, power) for at, power in readings]\n",
        ),
    ),
    "no-answer-as-zero": Way(
        "a moment without an answer was counted as 0 W. The card did not stop; only the reading is missing, and "
        "power changes evenly from the known reading before it to the one after it",
        (
            "(sample.at_ms / 1e3, sample.power_w) for sample in recording if sample.power_w is not None",
            "(sample.at_ms / 1e3, sample.power_w or 0.0) for sample in recording",
        ),
    ),
    "power-held": Way(
        "a moment without an answer got the power of the previous moment. Power changes evenly from one known reading to "
        "the next",
        (
            "energy = 0.0\n",
            "energy, powers = 0.0, [sample.power_w for sample in recording]\n"
            "    for place, power in enumerate(powers):\n        powers[place] = powers[place - 1] if power is None else "
            "power\n    readings = [(sample.at_ms / 1e3, power) for sample, power in zip(recording, powers)]\n",
        ),
    ),
    "as-share": Way("your utilisation is a fraction: 0.5 of the time is 50%", ("busy / watched", "busy / watched / 100")),
    "mean-of-samples": Way(
        "{key} is the plain mean of the samples: weight each by the time that it describes",
        (
            "seconds = readings[-1][0] - readings[0][0]\n",
            "seconds = energy * len(readings) / sum(power for _, power in readings)\n",
        ),
    ),
    "from-zero": Way(
        "the recording does not begin at 0 on the monitor's clock: its length is the last moment minus the first",
        ("seconds = readings[-1][0] - readings[0][0]", "seconds = readings[-1][0]"),
    ),
    "utilisation-of-the-time-after": Way(
        "you assumed that each utilisation lasts until the next sample. It is the mean over the time since the previous "
        "sample, because the card cannot know the future",
        (
            "        if sample.utilisation_percent is not None:\n            stretch = sample.at_ms - earlier.at_ms\n"
            "            busy += stretch * sample.utilisation_percent\n",
            "        if earlier.utilisation_percent is not None:\n            stretch = sample.at_ms - earlier.at_ms\n"
            "            busy += stretch * earlier.utilisation_percent\n",
        ),
    ),
    "silence-as-idle": Way(
        "an interval without an answer was counted as 0%, but nothing is known about it. Leave it out of the sum, and out "
        "of the time that you divide by",
        ("            watched += stretch\n", "            pass\n        watched += sample.at_ms - earlier.at_ms\n"),
    ),
    "missing": Way("{key} is missing: there is {given}", ('"mean_power_w": energy / seconds, ', "")),
}


class Sample(NamedTuple):
    """The monitor's readings at one moment."""

    at_ms: float
    power_w: float | None
    utilisation_percent: float | None


RECORDINGS: dict[str, list[Sample]] = {
    "uneven": [Sample(*row) for row in ((5000, 20, 5), (5100, 70, 60), (5150, 72, 100), (6400, 71, 99), (6500, 25, 40))],
    "even, from 0": [
        Sample(200.0 * at, power, busy) for at, power, busy in ((0, 30, 0), (1, 40, 50), (2, 70, 90), (3, 65, 100))
    ],
    "uneven, with an idle interval": [Sample(*row) for row in ((0, 30, 10), (100, 35, 0), (400, 60, 80))],
    "two samples": [Sample(1000, 10, 20), Sample(1500, 50, 80)],
    "uneven, with moments without an answer": [
        Sample(*row)
        for row in (
            (40, 35, 0),
            (90, None, 30),
            (300, 68, None),
            (310, None, None),
            (900, None, 97),
            (1000, 66, 100),
            (1730, 31, 12),
        )
    ],
}


def judge(part: Part) -> None:
    """Judge each figure of each recording."""
    summarise = part.function("summarise")
    sample_type = getattr(part.module, "Sample", Sample)
    answer = {
        name: part.call(summarise, [sample_type(*sample) for sample in recording], case=name)
        for name, recording in RECORDINGS.items()
    }
    for key in KEYS:
        cases = []
        for name, recording in RECORDINGS.items():
            values = answer[name]
            if not isinstance(values, Mapping):
                part.compare([Case(name, values, dict.fromkeys(KEYS, "..."))])
            if key not in values:
                raise part.wrong("missing", name, key=key, given=", ".join(map(str, values)) or "nothing")
            right = _figures(recording)[key]
            cases.append(Case(f"{key} of: {name}", values[key], right, _wrong_values(key, recording), {"key": key}))
        part.compare(cases, tolerance=1e-5)
    part.note(f"all three figures of {len(RECORDINGS)} recordings")


def _figures(recording: Sequence[Sample]) -> dict[str, float]:
    energy = _energy(recording, lambda low, high: (low + high) / 2)
    intervals = [sample for sample in itertools.pairwise(recording) if sample[1].utilisation_percent is not None]
    weights = [sample.at_ms - earlier.at_ms for earlier, sample in intervals]
    busy = sum(weight * (sample.utilisation_percent or 0.0) for weight, (_, sample) in zip(weights, intervals, strict=True))
    return {"energy_j": energy, "mean_power_w": energy / _seconds(recording), "utilisation_percent": busy / sum(weights)}


def _energy(recording: Sequence[Sample], middle: Callable[[float, float], float]) -> float:
    readings = [(sample.at_ms / 1e3, sample.power_w) for sample in recording if sample.power_w is not None]
    return sum((later - at) * middle(low, high) for (at, low), (later, high) in itertools.pairwise(readings))


def _hold(recording: Sequence[Sample]) -> list[Sample]:
    """Return the recording, with each missing power replaced by the previous power."""
    samples: list[Sample] = []
    for sample in recording:
        samples.append(sample._replace(power_w=samples[-1].power_w) if sample.power_w is None else sample)
    return samples


def _seconds(recording: Sequence[Sample]) -> float:
    return (recording[-1].at_ms - recording[0].at_ms) / 1e3


def _wrong_values(key: str, recording: Sequence[Sample]) -> dict[str, float]:
    right, seconds, last = _figures(recording)[key], _seconds(recording), recording[-1].at_ms / 1e3
    if key == "utilisation_percent":
        busy = [sample.utilisation_percent for sample in recording if sample.utilisation_percent is not None]
        pairs = list(itertools.pairwise(recording))
        reported_s = (
            sum(sample.at_ms - earlier.at_ms for earlier, sample in pairs if sample.utilisation_percent is not None) / 1e3
        )
        later_pairs = [sample for sample in pairs if sample[0].utilisation_percent is not None]
        return {
            "mean-of-samples": sum(busy) / len(busy),
            "utilisation-of-the-time-after": _mean_before(later_pairs),
            "silence-as-idle": right * reported_s / seconds,
            "as-share": right / 100,
        }
    powers = [sample.power_w for sample in recording if sample.power_w is not None]
    per = 1.0 if key == "energy_j" else 1 / seconds
    ways = {
        "mean-times-time" if key == "energy_j" else "mean-of-samples": sum(powers) / len(powers) * seconds * per,
        "each-until-the-next": _energy(recording, lambda low, _: low) * per,
        "each-since-the-last": _energy(recording, lambda _, high: high) * per,
        "power-held": _figures(_hold(recording))[key],
        "no-answer-as-zero": _figures([sample._replace(power_w=sample.power_w or 0.0) for sample in recording])[key],
    }
    if key == "energy_j":
        return ways | {"milliseconds": right * 1e3, "watt-hours": right / 3600}
    return ways | {"from-zero": right * seconds / last, "milliseconds": right * 1e3}


def _mean_before(pairs: Sequence[tuple[Sample, Sample]]) -> float:
    """Return the mean utilisation, with each reading weighted by the time after it."""
    stretches = [sample.at_ms - earlier.at_ms for earlier, sample in pairs]
    return sum(
        stretch * (earlier.utilisation_percent or 0.0) for stretch, (earlier, _) in zip(stretches, pairs, strict=True)
    ) / sum(stretches)
