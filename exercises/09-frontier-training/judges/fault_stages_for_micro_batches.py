"""Judge a repaired copy: the unit of held memory is one micro-batch with all layers of a rank."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("ZB-V holds {held:g} micro-batches on {stages} ranks by your count, but it needs no more than 1F1B")}
RUNS = {word: {"stages": 8, "clock": [{"label": "zb-v", "held": held}]} for word, held in (("right", 8.0), ("wrong", 16.0))}


def judge(part: Part) -> None:
    """Require that ZB-V holds as many micro-batches as there are ranks, as published."""
    stages = part.metrics["stages"]
    held = next(row["held"] for row in part.metrics["clock"] if row["label"] == "zb-v")
    if held != stages:
        raise part.wrong("still", held=held, stages=stages)
    part.note(f"ZB-V holds {held:g} micro-batches on {stages} ranks, as 1F1B")
