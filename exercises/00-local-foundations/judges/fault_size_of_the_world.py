"""Judge a repaired copy: LOCAL_WORLD_SIZE must be the number of processes on the node."""

from __future__ import annotations

from collections import Counter

from gpucourse.judge import Part, Way

WAYS = {"still": Way("node {node} has {right} processes, and each of them is told that there are {given}")}
RUNS = {
    word: {
        "ranks": [
            {"rank": 2 * node + local_rank, "node_rank": node, "local_rank": local_rank, "local_world_size": size}
            for node in range(2)
            for local_rank in range(2)
        ]
    }
    for word, size in (("right", 2), ("wrong", 4))
}


def judge(part: Part) -> None:
    """Compare LOCAL_WORLD_SIZE with the number of processes that a node really has."""
    rows = part.metrics["ranks"]
    counts = Counter(row["node_rank"] for row in rows)
    for row in rows:
        node = row["node_rank"]
        if row["local_world_size"] != counts[node]:
            raise part.wrong("still", node=node, right=counts[node], given=row["local_world_size"])
    part.note("each process is told how many processes its node has")
