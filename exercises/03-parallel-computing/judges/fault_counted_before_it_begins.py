"""Judge a repaired copy: the bytes of a hook must be those of a step in which it compresses."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "{hook}: the copy reports {given:,} bytes a step, as in the first one; once the hook compresses, it sends {right:,}"
    )
}
ROWS = [
    {"hook": "none", "bytes_first_step": 4000, "bytes_per_step": 4000, "bytes_by_formula": 4000},
    {"hook": "powersgd-1", "bytes_first_step": 4000, "bytes_by_formula": 240},
]
RUNS = {word: {"hooks": [ROWS[0], ROWS[1] | {"bytes_per_step": size}]} for word, size in (("right", 240), ("wrong", 4000))}


def judge(part: Part) -> None:
    """Require that no hook reports the bytes of a first step in which it still sent more than its formula says."""
    for row in part.metrics["hooks"]:
        if row["bytes_first_step"] != row["bytes_by_formula"] and row["bytes_per_step"] == row["bytes_first_step"]:
            raise part.wrong("still", hook=row["hook"], given=row["bytes_per_step"], right=row["bytes_by_formula"])
    part.note("the bytes of each hook are those of a step in which it compresses")
