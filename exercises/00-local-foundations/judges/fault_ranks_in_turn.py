"""Judges a repaired copy: the ranks of a node must be consecutive."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("node {node}, local rank {local_rank} has rank {rank}, but {right} processes come before it")}
RUNS = {
    word: {
        "ranks": [
            {
                "rank": ranks[2 * node + local_rank],
                "node_rank": node,
                "local_rank": local_rank,
                "should_be": 2 * node + local_rank,
            }
            for node in range(2)
            for local_rank in range(2)
        ]
    }
    for word, ranks in (("right", (0, 1, 2, 3)), ("wrong", (0, 2, 1, 3)))
}


def judge(part: Part) -> None:
    """Require that each rank is the number of processes before it, on earlier nodes and then on its own node."""
    for row in part.metrics["ranks"]:
        if row["rank"] != row["should_be"]:
            place = {"node": row["node_rank"], "local_rank": row["local_rank"]}
            raise part.wrong("still", **place, rank=row["rank"], right=row["should_be"])
    part.note("each node has consecutive ranks")
