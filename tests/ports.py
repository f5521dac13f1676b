"""TCP ports for tests. Each port goes to only one test process on this computer, from a range that the kernel never assigns.

Suppose that the kernel chooses a port, and that the port is closed and a server opens it again a second later. In between,
another process may have taken it, because every connection of every other test takes a port. The ports here are reserved by a
UDP socket with the same number, which no other process of any user can open until this process ends. The UDP socket does not
disturb a TCP server.
"""

from __future__ import annotations

import random
import socket

# Above the ports of Slurm's daemons and of ranks under Slurm, below the ports that the kernel assigns by itself.
_RANGE = range(30_000, 32_700)


def take_port() -> int:
    """Return a free port that no other test gets. Raises RuntimeError if there is none."""
    return take_ports(1)[0]


def take_ports(count: int) -> range:
    """Return `count` consecutive ports."""
    starts = list(_RANGE[:: max(count, 1)])
    random.shuffle(starts)
    for start in starts:
        ports = range(start, start + count)
        reservations = [socket.socket(type=socket.SOCK_DGRAM) for _ in ports]
        if all(map(_bind, reservations, ports)) and all(map(_is_free, ports)):
            for reservation in reservations:
                reservation.detach()  # it stays open for as long as this process lives
            return ports
        for reservation in reservations:
            reservation.close()
    raise RuntimeError(f"every port from {_RANGE.start} to {_RANGE.stop - 1} is taken")


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # old connections do not matter
        return _bind(trial, port)


def _bind(endpoint: socket.socket, port: int) -> bool:
    try:
        endpoint.bind(("", port))
    except OSError:
        return False
    return True
