"""Judge a repaired copy: a message within a copy must contain the activations of that copy's sequences, and no others."""

from __future__ import annotations

from typing import Any

from gpucourse.judge import Part, Way

WAYS = {"still": Way("{layout}: each copy has {share} sequences, and a message has {given:,} bytes instead of {right:,}")}


def make_run(*, whole: bool) -> dict[str, Any]:
    """Return the metrics of a run with 4 ranks."""
    rows = [
        {"layout": f"dp {dp} x tp {tp}", "dp": dp, "tp": tp, "tp_message_bytes": (4 * 16 // (1 if whole else dp)) * 32 * 64}
        for dp, tp in ((2, 2), (1, 4))
    ]
    return {"batch_size": 16, "length": 32, "width": 64, "layouts": rows}


RUNS = {"right": make_run(whole=False), "wrong": make_run(whole=True)}


def judge(part: Part) -> None:
    """Compare the size of a message in each layout with the activations of one copy."""
    metrics = part.metrics
    sliced = [row for row in metrics["layouts"] if row["tp"] > 1]
    for row in sliced:
        share = metrics["batch_size"] // row["dp"]
        right = 4 * share * metrics["length"] * metrics["width"]
        if row["tp_message_bytes"] != right:
            raise part.wrong("still", layout=row["layout"], share=share, given=row["tp_message_bytes"], right=right)
    part.note(f"{len(sliced)} layouts: a message has a row for each token of its copy")
