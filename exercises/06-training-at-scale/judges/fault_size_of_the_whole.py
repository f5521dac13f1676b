"""Judge a repaired copy: it must count only the bytes of a rank's own shards."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("stage {stage}: a rank holds {given:,.0f} bytes of {kind}, but its share of them is {right:,.0f}")}
SHARE = 4.0 * 400 / 4
RUNS = {
    word: {
        "parameters": 400,
        "world_size": 4,
        "stages": [
            {"stage": 2, "gradients_bytes": times * SHARE, "moments_bytes": times * 2 * SHARE, "weights_bytes": 4 * SHARE},
            {"stage": 3, "gradients_bytes": times * SHARE, "moments_bytes": times * 2 * SHARE, "weights_bytes": times * SHARE},
        ],
    }
    for word, times in (("right", 1), ("wrong", 4))
}


def judge(part: Part) -> None:
    """Require that all ranks together have exactly one model's gradients and moments at stages 2 and 3, and its weights at
    stage 3."""
    share = 4 * part.metrics["parameters"] / part.metrics["world_size"]
    for row in part.metrics["stages"]:
        kinds = {2: {"gradients": 1, "moments": 2}, 3: {"gradients": 1, "moments": 2, "weights": 1}}.get(row["stage"], {})
        for kind, times in kinds.items():
            if abs(row[f"{kind}_bytes"] / (times * share) - 1) > 1e-6:
                answer = row[f"{kind}_bytes"]
                raise part.wrong("still", stage=row["stage"], kind=kind, given=answer, right=times * share)
    part.note("the shards of all ranks together are one model, at stages 2 and 3")
