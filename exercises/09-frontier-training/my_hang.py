"""Your part of 9.8: which of thousands of ranks made all others wait.

You will learn    to follow a hang from the ranks that wait to the one that does not
You will produce  a search that names the rank, for simulated jobs and for records of torch's flight recorder
Try it            gpucourse try 9.8
Your part         the body of `find_culprit`; keep its name and parameters
Reading           modules/09-frontier-training/lesson-9-sick-gpu.md
"""

from __future__ import annotations

from typing import Any


def find_culprit(records: list[list[dict[str, Any]]], members: dict[str, list[int]]) -> tuple[int, str]:
    """Return the rank that made all others wait, and "stopped" or "differs". There is exactly one.

    `records[rank]` has the rank's last operation in each of its groups, the newest last. Each is a dictionary:

        group       the name of the group, such as "tp 3 0", "dp 2 7", or "pp 0 1 4 forward" between two stages
        number      how many operations of this group the rank had called before
        operation   what it called, such as "all_reduce forward 5, layer 1"
        state       "completed", or "waiting" if it still waits for other members
        time_ms     when it called, by the clock of its node

    Only the newest operation can be waiting. If it is not, the rank computes, or it has finished. `members[group]` are the
    ranks of a group, with at least three in a group of collectives. A pp group has two: the sender first, then the receiver;
    a send never waits.

    - "stopped": the rank does not call what others wait for, and does not wait itself
    - "differs": at the same number of a group, the rank has called a different operation from the other members
    """
    raise NotImplementedError("find_culprit: which rank does a waiting rank wait for, and which one does that rank wait for?")
