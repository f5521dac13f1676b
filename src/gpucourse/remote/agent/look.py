"""The activity of a run's ranks right now, seen from outside (Linux): stopped, computing, waiting."""

from __future__ import annotations

import os
import time

from gpucourse.remote.agent.job import Job

_SAMPLE_S = 0.3
_BUSY = 0.5  # of one core


def list_activities(job: Job) -> dict[str, str]:
    """Return a word for each rank that runs here; empty if this system cannot show it."""
    if not os.path.isdir("/proc/self"):
        return {}
    ended_ranks = job.ranks()
    pids = {rank: pid for rank, pid in _pids(job).items() if rank not in ended_ranks}
    old_stats = {rank: _stat(pid) for rank, pid in pids.items()}
    time.sleep(_SAMPLE_S)
    states = {}
    for rank, pid in pids.items():
        old_stat, new_stat = old_stats[rank], _stat(pid)
        if old_stat is None or new_stat is None:
            continue
        if new_stat[0] in "Tt":
            states[str(rank)] = "stopped"
        else:
            states[str(rank)] = "computing" if new_stat[1] - old_stat[1] >= _BUSY * _SAMPLE_S else "waiting"
    return states


def _pids(job: Job) -> dict[int, int]:
    pids: dict[int, int] = {}
    for name in os.listdir(job.path("ranks")) if job.has("ranks") else ():
        process = job.read("ranks", name) if name.endswith(".pid") else {}
        if process:
            pids[process["rank"]] = process["pid"]
    return pids


def _stat(pid: int) -> tuple[str, float] | None:
    """Return the state's letter, and the processor seconds so far."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return fields[0].decode(), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
