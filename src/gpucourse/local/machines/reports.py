"""Looking into machines from their room, without going in: which daemons run, what Slurm says, what its logs complain about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucourse.local.machines import daemons

_LAST_BYTES = 16_384
_SYMPTOMS = (  # what munge and Slurm write, and what it means; the first that fits is told
    (r"Rewound credential", "its clock is ahead of the others': munge refuses what comes from the future"),
    (r"Expired credential", "its clock differs from the others': munge refuses what is older than five minutes"),
    (
        r"Invalid cred(ential)? ?(MAC|HMAC|signature)?|Unable to decode|Invalid credential|Protocol authentication error",
        "munge refuses: the machine has another munge.key than the head",
    ),
    (r"Munge encode failed|Failed to access \"[^\"]*munge", "munged does not answer on it"),
    (r"has invalid account|no new list given back", "this Slurm without accounting names wrong reasons for waiting jobs"),
    (r"gres/gpu count reported lower than configured", "Slurm counts fewer GPUs than it should have"),
    (r"Duplicate jobid", "slurmctld was killed before it had stored a job that began just then"),
)
_FINE = {"idle", "mixed", "allocated", "completing", "allocated+", "planned"}


def absent(machine: Mapping[str, Any], pid: int) -> list[str]:
    """The daemons of the machine whose first process is `pid` that should run and do not."""
    return [name for name in daemons.wanted(machine) if daemons.running(name, f"/proc/{pid}/root") is None]


def symptom(logs: str) -> str:
    """What the last lines of a daemon's log mean; empty where nothing known is in them."""
    newest, found = -1, ""
    for pattern, meaning in _SYMPTOMS:
        for match in re.finditer(pattern, logs):
            if match.start() > newest:
                newest, found = match.start(), meaning
    return found


def log_of(pid: int, name: str) -> str:
    """The end of a daemon's log, as it lies in the machine."""
    try:
        with Path(f"/proc/{pid}/root{daemons.LOGS[name]}").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def states(listed: str) -> dict[str, str]:
    """What is wrong with each node, by Slurm's own word, from `sinfo -h -N -o '%N|%T|%G|%E'`; empty where nothing is."""
    found = {}
    for line in listed.splitlines():
        name, state, gres, reason = (*line.split("|", 3), "", "", "")[:4]
        if not name:
            continue
        bare = state.rstrip("*~#!%$@+^-").lower()
        if bare in _FINE and not state.endswith("*"):
            found[name] = "" if "gpu:1" in gres else f"Slurm counts no GPU on it ({gres})"
        else:
            found[name] = f"Slurm says {state}" + (f": {reason}" if reason and reason != "none" else "")
    return found
