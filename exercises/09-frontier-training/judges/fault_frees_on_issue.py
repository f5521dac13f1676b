"""Judge a repaired copy of the clock: a layer is in memory until its computation has ended."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("two layers are in memory while the first is computed and the second arrives, but your count is {count}")}


def judge(part: Part) -> None:
    """Judge the memory of two layers. The second is gathered while the first is computed."""
    issues = [("gather", 0), ("forward", 0), ("free", 0), ("gather", 1), ("forward", 1), ("free", 1)]
    spans = [(0.0, 1.0), (1.0, 5.0), (5.0, 5.0), (1.0, 2.0), (5.0, 9.0), (9.0, 9.0)]
    count = part.call(part.function("measure_exposure"), issues, spans).whole_at_once
    if count != 2:
        raise part.wrong("still", count=count)
    part.note("a layer counts until its computation has ended")
