"""Choose free ports of this computer for Slurm's daemons. A daemon keeps its port as long as no other process takes it."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Collection, Mapping, Sequence

# Below the ports that the kernel assigns by itself, and none of 20000 to 29999, where the processes of a job meet.
_RANGE = range(12_000, 20_000)


class NoneFree(Exception):
    """Every port in the range is in use."""


def is_free(port: int) -> bool:
    """Return whether the port is free on every address of this computer."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Slurm does: old connections do not matter
        try:
            trial.bind(("", port))
        except OSError:
            return False
        return True


def choose_ports(
    names: Sequence[str], earlier: Mapping[str, int], running: Collection[str], free: Callable[[int], bool] = is_free
) -> dict[str, int]:
    """Return a port for each of `names`: its earlier port if that is still free, otherwise a new one. Raises NoneFree.

    The daemons in `running` keep their ports: these are in use, but by the daemons themselves.
    """
    reusable = {name: earlier[name] for name in names if name in earlier and (name in running or free(earlier[name]))}
    used_ports = set(reusable.values())
    start = random.randrange(len(_RANGE))  # so that two clusters that start together do not try the same ports
    candidates = (_RANGE[(start + step) % len(_RANGE)] for step in range(len(_RANGE)))
    ports = {}
    for name in names:
        port = reusable.get(name) or next((port for port in candidates if port not in used_ports and free(port)), None)
        if port is None:
            raise NoneFree(f"every port from {_RANGE.start} to {_RANGE.stop - 1} is taken")
        ports[name] = port
        used_ports.add(port)
    return ports
