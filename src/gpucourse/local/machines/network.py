"""The network around the machines: one bridge, and one cable for each machine.

This module makes lines for `ip -batch` and `tc -batch`, and runs them.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence

BRIDGE = "bridge0"
_ROOM_ADDRESS = "10.77.0.1"
_PREFIX = 24
_FIRST = 10  # node0 has 10.77.0.10, node64 10.77.0.74


def address(index: int) -> str:
    """Return the private IPv4 address of the machine with this number (0 to 64)."""
    return f"10.77.0.{_FIRST + index}"


def bridge_lines() -> list[str]:
    """Return the commands for `ip -batch` that create the bridge to which every machine is connected."""
    return [
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {_ROOM_ADDRESS}/{_PREFIX} dev {BRIDGE}",
        f"link set {BRIDGE} up",
    ]


def cable_lines(name: str, pid: int) -> list[str]:
    """Return the lines that lay a cable from the bridge to a machine. `pid` is a process in the machine's network."""
    return [
        f"link add c-{name} type veth peer name eth0 netns {pid}",
        f"link set c-{name} master {BRIDGE} up",
    ]


def cut(name: str) -> None:
    """Remove the machine's cable if it still exists."""
    subprocess.run(["ip", "link", "delete", f"c-{name}"], capture_output=True, check=False)


def machine_lines(address: str) -> list[str]:
    """Return the lines for the machine's end of the cable.

    There is no route to the outside, so the lookup of a name that is not in /etc/hosts fails immediately.
    """
    return ["link set lo up", f"address add {address}/{_PREFIX} dev eth0", "link set eth0 up"]


def run(program: str, lines: Iterable[str], *, prefix: Sequence[str] = ()) -> None:
    """Pass lines to `ip` or `tc`. Raises OSError with the first line of the program's error output."""
    text = "".join(f"{line}\n" for line in lines)
    process = subprocess.run([*prefix, program, "-batch", "-"], input=text, capture_output=True, text=True, check=False)
    if process.returncode:
        raise OSError(f"{program}: {process.stderr.strip().splitlines()[0] if process.stderr.strip() else text.strip()}")
