"""Judge a repaired copy: the bits of a weight include those of its group's scale and zero."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "integers of {bits} bits in groups of {group} are said to take {result:g} bits a weight: what about the scales?"
    )
}
RUNS = {
    "right": {"ways": [{"way": "int4 groups of 16", "whose": "course", "bits_per_weight": 5.5}]},
    "wrong": {"ways": [{"way": "int4 groups of 16", "whose": "course", "bits_per_weight": 4.0}]},
}


def judge(part: Part) -> None:
    """Require 24 bits more for each group: a scale of two bytes and a zero of one."""
    for row in part.metrics["ways"]:
        kind, _, group = row["way"].partition(" groups of ")
        if group.isdigit() and row["whose"] == "course":
            bits = int(kind.removeprefix("int"))
            if abs(row["bits_per_weight"] - bits - 24 / int(group)) > 0.01:
                raise part.wrong("still", bits=bits, group=group, result=row["bits_per_weight"])
    part.note("each group has 24 bits for its scale and zero")
