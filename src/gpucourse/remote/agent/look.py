"""Find out from outside whether each of a run's ranks is stopped, computing or waiting right now (Linux only)."""

from __future__ import annotations

import os
import time

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.reap import read_stat

_SAMPLE_S = 0.3
_BUSY = 0.5  # the share of one core above which a process counts as computing


def list_activities(job: Job) -> dict[str, str]:
    """Return a word for the activity of each rank that runs here, or an empty dict if this system cannot show it."""
    if not os.path.isdir("/proc/self"):
        return {}
    ended_ranks = job.ranks()
    pids = {rank: pid for rank, pid in _pids(job).items() if rank not in ended_ranks}
    old_stats = {rank: read_stat(pid) for rank, pid in pids.items()}
    time.sleep(_SAMPLE_S)
    states = {}
    for rank, pid in pids.items():
        old_stat, new_stat = old_stats[rank], read_stat(pid)
        if not old_stat or not new_stat:
            continue
        if new_stat[0] in (b"T", b"t"):
            states[str(rank)] = "stopped"
        else:
            seconds = _count_seconds(new_stat) - _count_seconds(old_stat)
            states[str(rank)] = "computing" if seconds >= _BUSY * _SAMPLE_S else "waiting"
    return states


def _pids(job: Job) -> dict[int, int]:
    pids: dict[int, int] = {}
    for name in os.listdir(job.path("ranks")) if job.has("ranks") else ():
        process = job.read("ranks", name) if name.endswith(".pid") else {}
        if process:
            pids[process["rank"]] = process["pid"]
    return pids


def _count_seconds(stat: list[bytes]) -> float:
    """Return the processor time that a process has used so far, in seconds."""
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")
