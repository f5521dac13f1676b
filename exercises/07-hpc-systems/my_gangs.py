"""Your part of 7.5: a scheduler that starts gangs on a cluster of racks.

You will learn    why a gang starts with all of its nodes, what a reservation is, and what a free rack is worth
You will produce  a scheduler; the run compares how long gangs wait with it and with two simpler ones
Try it            gpucourse try 7.5
Your part         the body of `schedule`; keep its name and parameters
Reading           modules/07-hpc-systems/lesson-5-decisions.md, "Which gang starts next"
"""

from __future__ import annotations


def schedule(queue: list[dict], free: dict[str, int], running: list[dict], rack_size: int) -> dict[str, dict[str, int]]:
    """Return the gangs that start now, each with its nodes in each rack: {"job-03": {"a": 2}}. It may be empty.

    The cluster calls this whenever a gang arrives or ends.
    `queue`: the gangs that wait, in the order of their arrival: {"name": "job-03", "nodes": 2, "minutes": 30}.
    `free`: the free nodes of each rack: {"a": 3, "b": 0}. Each rack has `rack_size` nodes.
    `running`: the gangs that run: {"name": "job-01", "nodes": {"a": 5, "b": 8}, "minutes_left": 12}.

    1. A gang starts with all its nodes, in as few racks as its size allows.
    2. The first gang that has to wait starts no later than without the gangs behind it.
    3. Apart from that, every gang that can start does so.
    4. Gangs wait as little as these rules allow: which rack you choose makes a difference.
    """
    raise NotImplementedError("schedule: when can the first gang that waits start, and what may pass it?")
