"""Judge a repaired copy: a number in bfloat16 has two bytes."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "{name} in bfloat16 is said to send {given:,.0f} bytes in a step, but {numbers:,.0f} numbers have {right:,.0f}"
    )
}
RUNS = {
    word: {"trainings": [{"way": "fully_shard", "wire": "float32", "sent_bytes": 12e6, "by_formula_bytes": 12e6},
                         {"way": "fully_shard", "wire": "bfloat16", "sent_bytes": sent, "by_formula_bytes": 6e6}]}
    for word, sent in (("right", 6e6), ("wrong", 12e6))
}  # fmt: skip


def judge(part: Part) -> None:
    """Compare the bytes on the wire with the number of elements and the size of their type."""
    for row in part.metrics["trainings"]:
        right = row["by_formula_bytes"]
        if row["wire"] == "bfloat16" and abs(row["sent_bytes"] / right - 1) > 0.1:
            raise part.wrong("still", name=row["way"], given=row["sent_bytes"], numbers=right / 2, right=right)
    part.note("bytes are counted with the size of each tensor's type")
