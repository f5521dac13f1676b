"""Your part of 1.3: energy and utilisation from a recording with uneven intervals and gaps.

You will learn    what a reading describes: a moment, or the time before it
You will produce  a `summarise` of the recording of any monitor
Try it            gpucourse try 1.3
Your part         the body of `summarise`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson-3-watching.md, "What the monitor shows"
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Sample(NamedTuple):
    """The monitor's readings at one moment: milliseconds on its clock, watts, percent. A reading is None if the monitor got no
    answer."""

    at_ms: float
    power_w: float | None
    utilisation_percent: float | None


def summarise(recording: Sequence[Sample]) -> dict[str, float]:
    """Return the energy in joules, the mean power in watts and the mean utilisation in percent, over the whole recording.

    There are at least two samples, in the order of their time. The intervals are uneven, because a busy monitor is late. The
    first and the last sample have all readings. If the monitor got no answer, the device went on all the same.

    Power is what the card drew at the moment of the sample; it changes evenly from one known reading to the next. Utilisation
    is the share of busy time since the previous sample, as nvidia-smi reports it; nothing is known about an interval
    without an answer.

    Return a dictionary with "energy_j", "mean_power_w" and "utilisation_percent".
    """
    raise NotImplementedError("summarise: which period does each reading describe?")
