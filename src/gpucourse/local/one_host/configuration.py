"""Make the configuration of a Slurm whose daemons share one computer, by filling in the @NAMES@ in a template, and choose
their ports."""

from __future__ import annotations

import hashlib
import random
import re
import shlex
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from gpucourse.local import processes

TASK = "task"
"""The program that slurmd runs before every task of a job. It prints changes to the task's environment."""

_PORT = re.compile(r"@PORT_(\w+)@")


def daemons(files: Mapping[str, str]) -> list[str]:
    """Return the daemons that need a port: slurmctld, and the nodes in their order."""
    return list(dict.fromkeys(_PORT.findall("".join(files.values()))))


def fill_in(
    files: Mapping[str, str], *, host: str, user: str, folder: Path, ports: Mapping[str, int], first_job: int
) -> dict[str, str]:
    """Return the files with every @NAME@ filled in. `folder` replaces @FOLDER@."""
    values = {"@HOST@": host, "@USER@": user, "@FOLDER@": str(folder), "@FIRST@": str(first_job)}
    values |= {f"@PORT_{name}@": str(port) for name, port in ports.items()}
    return {name: _fill_in(text, values) for name, text in files.items()}


def first_job(uid: str) -> int:
    """Return the number of the stack's first job. The number differs between clusters on this computer.

    The processes of a job meet at a port that depends on the job's number, and jobs of two clusters must not meet.
    """
    return 1 + 100 * (int(hashlib.sha256(uid.encode()).hexdigest()[:8], 16) % 90)


def task(uid: str, nodes: Path, slurm_conf: Path) -> str:
    """Return the text of the program TASK.

    The program sets the marks by which a job's processes are found, and the home of the node that the job runs on. It removes
    the session's mark, because a job belongs to Slurm, not to the session that submitted it.
    """
    node = '"$SLURMD_NODENAME"'
    variables = [
        f"{processes.STACK}={uid}",
        f"{processes.NODE}={uid}/{node}",
        f"GPUCOURSE_NODE={node}",
        f"SLURM_CONF={shlex.quote(str(slurm_conf))}",
        f"HOME={shlex.quote(str(nodes))}/{node}/home",
    ]
    lines = ["#!/bin/sh", f"printf 'export %s\\n' {' '.join(variables)}", f"printf 'unset %s\\n' {processes.SESSION}"]
    return "".join(f"{line}\n" for line in lines)


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


# These are below the ports that the kernel assigns automatically. The processes of a job meet at one of 20000 to 29999.
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
