"""Your part of 1.3: energy and utilisation from a recording that is uneven and has holes.

You will learn    what a reading stands for: a moment, or the time before it
You will produce  a `summarise` of the recording of any monitor
Try it            gpucourse try 1.3
Your part         the body of `summarise`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson.md, "What the monitor shows"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Sample(NamedTuple):
    """What the monitor said at one moment: milliseconds on its clock, watts, percent. None where it gave no answer."""

    at_ms: float
    power_w: float | None
    utilisation_percent: float | None


def summarise(recording: Sequence[Sample]) -> dict[str, float]:
    """Energy in joules, mean power in watts and mean utilisation in percent, over the whole recording.

    The samples come in the order of their time, at least two of them, and at uneven distances: a busy monitor is late. The
    first and the last sample have all readings.

    A power is that of its moment: between two known ones it changes evenly, also across moments without an answer. A
    utilisation is the mean over the time since the sample before it, and says nothing of the time before the recording;
    stretches without an answer are left out of the mean.

    Give a dictionary with "energy_j", "mean_power_w" and "utilisation_percent".
    """
    raise NotImplementedError("summarise: how long does each reading hold, and from when to when?")
