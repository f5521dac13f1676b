"""Judge a repaired copy: weights in fewer bits do not mean fewer products."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "with 512 requests, a step of {form} takes {result:.0f} ms, one of 16 bits {plain:.0f} ms. Weights are converted to "
        "16 bits before they are multiplied: there are as many products as before"
    )
}
_PLAIN = {"format": "16 bits", "bits": 16.0, "sim_ms_batch_512": 107.0}
RUNS = {
    "right": {"decode": [_PLAIN, {"format": "int4 groups of 32", "bits": 4.75, "sim_ms_batch_512": 107.0}]},
    "wrong": {"decode": [_PLAIN, {"format": "int4 groups of 32", "bits": 4.75, "sim_ms_batch_512": 49.0}]},
}


def judge(part: Part) -> None:
    """Require that a large batch, whose products are the limit, gains nothing from smaller weights alone."""
    plain, *others = part.metrics["decode"]
    for row in others:
        is_alone = row["format"] != "FP8, products in FP8"
        if is_alone and row["sim_ms_batch_512"] < 0.7 * plain["sim_ms_batch_512"]:
            raise part.wrong("still", form=row["format"], result=row["sim_ms_batch_512"], plain=plain["sim_ms_batch_512"])
    part.note("a large batch gains nothing from smaller weights alone")
