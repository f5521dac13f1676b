"""The torchrun launcher: the same line on each node, meeting at the head's private address.

Static rendezvous: the node ranks are known, so no second round of agreement is needed (about a second less than c10d).
`{rank}` is where the node's agent puts the wrapper that gives every rank a log of its own; without it the line works by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RANK, MAX_RESTARTS = "{rank}", "--max-restarts="


def by_hand(argv: Sequence[str]) -> tuple[str, ...]:
    """The argument list that a person types: without the place of the wrapper. A later `{rank}` belongs to the script."""
    words = list(argv)
    if RANK in words:
        words.remove(RANK)
    return tuple(words)


@dataclass(frozen=True, kw_only=True)
class Rendezvous:
    """Where the ranks of a run meet, seen from one node."""

    nodes: int
    node_rank: int
    address: str
    port: int


def command(
    python: str, rendezvous: Rendezvous, processes: int, script: str, arguments: tuple[str, ...], max_restarts: int = 0
) -> tuple[str, ...]:
    """The argument list that one node starts. `torchrun` is `python -m torch.distributed.run`: no PATH to search."""
    restarts = (f"{MAX_RESTARTS}{max_restarts}",) if max_restarts else ()
    return (
        python,
        "-m",
        "torch.distributed.run",
        f"--nnodes={rendezvous.nodes}",
        f"--nproc-per-node={processes}",
        f"--node-rank={rendezvous.node_rank}",
        f"--master-addr={rendezvous.address}",
        f"--master-port={rendezvous.port}",
        *restarts,
        "--no-python",
        RANK,
        python,
        "-u",
        script,
        *arguments,
    )
