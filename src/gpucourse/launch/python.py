"""The python launcher: one process for each node, with the rank variables set as torchrun would."""

from __future__ import annotations

from gpucourse.launch.torchrun import RANK, Rendezvous


def command(python: str, script: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argument list that one node starts."""
    return (RANK, python, "-u", script, *arguments)


def ranks(index: int, world: int, rendezvous: Rendezvous) -> dict[str, str]:
    """Return the rank variables of the process on node number `index`."""
    return {
        "RANK": str(index),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": rendezvous.address,
        "MASTER_PORT": str(rendezvous.port),
    }
