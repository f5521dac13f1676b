"""Judge a repaired copy: the first sample of a phase describes the time before it, so it must not be counted."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("one load has the samples {samples}: the readings {given} are counted, but should be {right}")}
BUSY = {"idle": (80.0, 1.0, 2.0), "copying": (3.0, 96.0, None, 98.0)}


def judge(part: Part) -> None:
    """Check that the utilisation of a phase leaves out its first reading, which belongs to the phase before it."""
    samples = [{"phase": phase, "utilisation_percent": value} for phase, values in BUSY.items() for value in values]
    select = part.function_alone("select", samples=samples)
    for phase, values in BUSY.items():
        right = [value for value in values[1:] if value is not None]
        given = part.call(select, phase, "utilisation_percent")
        if given != right:
            raise part.wrong("still", samples=values, given=given, right=right)
    part.note("the figures of each load begin with its second sample")
