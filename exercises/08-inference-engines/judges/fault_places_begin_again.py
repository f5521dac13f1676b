"""Judge a repaired copy: after a hand-over, the answer must be that of one process."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("after the hand-over, {count} tokens differ from those of one process")}
RUNS = {word: {"handed_off": count, "handed": [{"tokens_off": count}]} for word, count in (("right", 0), ("wrong", 18))}


def judge(part: Part) -> None:
    """Require that no token changes, in any of the hand-overs."""
    count = max(part.metrics["handed_off"], *(row["tokens_off"] for row in part.metrics["handed"]))
    if count:
        raise part.wrong("still", count=count)
    part.note("the answer continues at the place after the prompt")
