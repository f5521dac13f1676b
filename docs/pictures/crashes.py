"""The pictures of module 6 about crashes: the losses of two lives, and the interval between saves."""

from __future__ import annotations

import math
from collections.abc import Callable

from docs.pictures.canvas import Canvas

LOSSES = (
    4.370, 3.900, 3.449, 2.986, 2.570, 2.219, 1.921, 1.654, 1.471, 1.289,
    1.114, 0.994, 0.902, 0.867, 0.784, 0.690, 0.620, 0.633, 0.606, 0.601,
)  # fmt: skip
"""Losses of exercise 6.5 with its local defaults, in nats, one per step."""
SAVED_EVERY, CRASHED_AFTER = 10, 13


def draw_lives() -> Canvas:
    """Draw the losses of two lives by step, with the last checkpoint and the crash between them."""
    again = CRASHED_AFTER - SAVED_EVERY
    picture = Canvas(
        "The losses of two lives",
        f"The loss of {len(LOSSES)} steps, which falls from {LOSSES[0]:.1f} to {LOSSES[-1]:.1f}. The first life does "
        f"steps 1 to {CRASHED_AFTER} and ends there; a checkpoint was saved after step {SAVED_EVERY}. The second life begins "
        f"at that checkpoint and does steps {SAVED_EVERY + 1} to {len(LOSSES)}. The {again} steps that both lives do have "
        "exactly the same losses, so the points of the two lives coincide.",
        300,
    )
    left, right, top, bottom = 60.0, 740.0, 40.0, 236.0
    high = max(LOSSES)

    def place(step: int) -> tuple[float, float]:
        return left + (right - left) * (step - 1) / (len(LOSSES) - 1), bottom - (bottom - top) * LOSSES[step - 1] / high

    for loss in range(math.floor(high) + 1):
        y = bottom - (bottom - top) * loss / high
        picture.line(left, y, right, y, "grid")
        picture.note(left - 8, y + 4, str(loss), anchor="end")
    picture.note(8, 20, "loss, in nats")
    saved, crashed = place(SAVED_EVERY)[0], place(CRASHED_AFTER)[0]
    picture.line(saved, top - 14, saved, bottom)
    picture.note(saved - 6, top - 4, f"checkpoint after step {SAVED_EVERY}", anchor="end")
    picture.line(crashed, top - 14, crashed, bottom, "line sd")
    picture.note(crashed + 6, top - 4, f"rank 1 ends after step {CRASHED_AFTER}")
    picture.curve([place(step) for step in range(1, CRASHED_AFTER + 1)], "sa")
    picture.curve([place(step) for step in range(SAVED_EVERY + 1, len(LOSSES) + 1)], "sb")
    for step in range(1, len(LOSSES) + 1):
        picture.dot(*place(step), "a" if step <= SAVED_EVERY else "e" if step <= CRASHED_AFTER else "b")
        picture.note(place(step)[0], bottom + 16, str(step), anchor="middle")
    picture.label(left, 274, "Blue: the first life. Orange: the second.")
    picture.label(left, 290, f"Violet: the {again} steps that both have done, with equal losses.")
    return picture


def draw_interval(cost_s: float = 2.0, mtbf_s: float = 4 * 3600.0) -> Canvas:
    """Draw the cost of saves and of crashes over the interval between saves, and the minimum of their sum."""
    best = math.sqrt(2 * cost_s * mtbf_s)
    least = 100 * (cost_s / best + best / 2 / mtbf_s)
    picture = Canvas(
        "The interval between saves",
        f"Three curves over the interval between two saves, for a save of {cost_s:g} s and one failure in 4 hours on average. "
        "With a longer interval, saves take a smaller share of the time, but crashes lose a larger share. The sum of both is "
        f"smallest at {best:.0f} s, where each share is {least / 2:.2f} %. The sum is flat there: from a third to three times "
        f"that interval it stays below {_sum_percent(cost_s, mtbf_s, 3 * best):.1f} %.",
        330,
    )
    left, right, top, bottom = 64.0, 740.0, 30.0, 262.0
    first, last, high = best / 12, best * 12, 6.0

    def place(seconds: float, percent: float) -> tuple[float, float]:
        x = left + (right - left) * math.log(seconds / first) / math.log(last / first)
        return x, bottom - (bottom - top) * min(percent, high) / high

    for percent in range(0, 7, 2):
        picture.line(left, place(best, percent)[1], right, place(best, percent)[1], "grid")
        picture.note(left - 8, place(best, percent)[1] + 4, f"{percent} %", anchor="end")
    for factor, words in ((1 / 9, "27 s"), (1 / 3, "80 s"), (1, "240 s"), (3, "720 s"), (9, "36 min")):
        picture.note(place(best * factor, 0)[0], bottom + 18, words, anchor="middle")
    steps = [first * (last / first) ** (step / 80) for step in range(81)]
    saving = [place(seconds, 100 * cost_s / seconds) for seconds in steps if 100 * cost_s / seconds <= high]
    losing = [place(seconds, 50 * seconds / mtbf_s) for seconds in steps if 50 * seconds / mtbf_s <= high]
    both = [place(seconds, _sum_percent(cost_s, mtbf_s, seconds)) for seconds in steps]
    picture.curve(saving, "sa")
    picture.curve(losing, "sb")
    picture.curve([point for point in both if point[1] > top + 0.5], "sd")
    picture.dot(*place(best, least), "d")
    picture.line(*place(best, least), place(best, least)[0], bottom)
    picture.label(place(best, 0)[0] + 8, bottom - 120, f"minimum: {least:.2f} %")
    picture.label(left, 300, "Blue: time for saves. Orange: time lost to crashes, half an interval each. Red: the sum.")
    picture.note(left, 318, "Interval, on a logarithmic scale; a save takes 2 s, a failure comes every 4 h.")
    return picture


def _sum_percent(cost_s: float, mtbf_s: float, seconds: float) -> float:
    return 100 * (cost_s / seconds + seconds / 2 / mtbf_s)


PICTURES: dict[str, Callable[[], Canvas]] = {"lives": draw_lives, "interval": draw_interval}
