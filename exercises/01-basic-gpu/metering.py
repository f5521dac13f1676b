"""The learner's meter of exercise 1.3 on the samples of its run, and the rules that every right meter obeys.

You will learn    how to check a figure without a second measurement: by changes that must not affect it
You will produce  nothing directly: gpu_monitoring.py uses it for the row `yours`
Run it            python gpu_monitoring.py --model tiny
Your part         write my_meter.py
Reading           modules/01-basic-gpu/lesson-3-watching.md, "What the monitor shows"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Reading = tuple[float, "float | None", "float | None"]  # milliseconds; watts, or GiB if power is unknown; percent
SILENCE_PERIOD = 7  # in each period of this many samples, two lose a reading, as if the monitor had not answered
POINTS = 100  # of the curve of the energy


def meter(_world: None, recording: list[Reading]) -> dict[str, Any]:
    """Return the figures of my_meter.py for a recording without some of its readings, and their first fault, or `right`.

    `so_far` has the moments at which all readings are known, with the energy of the recording up to each.
    """
    import my_meter  # the learner's file, which may raise or hang: `own_part` limits its time

    def summarise(readings: Sequence[Reading]) -> dict[str, float]:
        result = my_meter.summarise([my_meter.Sample(*reading) for reading in readings])
        return {key: float(result[key]) for key in ("energy_j", "mean_power_w", "utilisation_percent")}

    thinned = list(recording)
    for place in range(1, len(recording) - 1):
        moment, power, utilisation = recording[place]
        remainder = place % SILENCE_PERIOD
        thinned[place] = (moment, None if remainder == 3 else power, None if remainder == 5 else utilisation)
    ends = [place for place, reading in enumerate(thinned) if place and None not in reading]
    so_far = [(thinned[end][0], summarise(thinned[: end + 1])["energy_j"]) for end in ends[:: max(1, len(ends) // POINTS)]]
    return {**summarise(thinned), "so_far": so_far, "verdict": find_fault(summarise, thinned)}


def find_fault(summarise: Callable[[Sequence[Reading]], dict[str, float]], recording: Sequence[Reading]) -> str:
    """Return a sentence on the first rule that a meter breaks on a recording, or `right`."""
    result = summarise(recording)
    powers = [power for _, power, _ in recording if power is not None]
    if not min(powers) * 0.999 <= result["mean_power_w"] <= max(powers) * 1.001:
        return f"mean_power_w is {result['mean_power_w']:.6g}, and the readings are from {min(powers):.6g} to {max(powers):.6g}"
    seconds = (recording[-1][0] - recording[0][0]) / 1e3
    if not _is_close(result["energy_j"], result["mean_power_w"] * seconds):
        return f"energy_j is not mean_power_w times the {seconds:.3g} seconds of the recording"
    middle = next(place for place in range(len(recording) // 2, len(recording)) if recording[place][1] is not None)
    halves = [summarise(half) for half in (recording[: middle + 1], recording[middle:])]
    if not _is_close(result["energy_j"], sum(half["energy_j"] for half in halves)):
        return "the energies of two halves do not add up to that of the whole recording"
    utilisations = [value for _, _, value in recording if value is not None]
    mean = result["utilisation_percent"]
    if not min(utilisations) * 0.999 <= mean <= max(utilisations) * 1.001:
        return (
            f"utilisation_percent is {mean:.6g}, and the readings are from {min(utilisations):.6g} to {max(utilisations):.6g}"
        )
    filled = [(moment, power, mean if value is None else value) for moment, power, value in recording]
    if not _is_close(mean, summarise(filled)["utilisation_percent"]):
        return "intervals without an answer change the mean utilisation"
    halves = [summarise(half) for half in (filled[: middle + 1], filled[middle:])]
    share = (recording[middle][0] - recording[0][0]) / 1e3 / seconds
    weighted = share * halves[0]["utilisation_percent"] + (1 - share) * halves[1]["utilisation_percent"]
    if not _is_close(mean, weighted):
        return "the mean utilisation of two halves, weighted by their time, is not that of the whole recording"
    backwards = [(-moment, power, utilisations) for moment, power, utilisations in reversed(recording)]
    if not _is_close(result["energy_j"], summarise(backwards)["energy_j"]):
        return "a recording that is played backwards has a different energy"
    moment, power, _ = recording[0]
    if not _is_close(mean, summarise([(moment, power, 55.5), *recording[1:]])["utilisation_percent"]):
        return "the first utilisation, which describes the time before the recording, changes the mean"
    if not _is_close(result["energy_j"], summarise([row for row in recording if row[1] is not None])["energy_j"]):
        return "a moment without an answer changes the energy"
    return "right"


def _is_close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
