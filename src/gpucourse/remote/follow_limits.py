"""The limits for following a run: its time, and which logs it may have on this computer."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence

from gpucourse.errors import UnreachableError
from gpucourse.model.node import Node
from gpucourse.remote.fleet import Outcome
from gpucourse.remote.patience import extra_s

MOST_LOGS = 24_576  # those of 10,000 tasks of an array, all of which may be put back into the queue


class TimeLimit:
    """The time limit for following a run: `seconds` besides what its logs need, and never longer than `until` (monotonic
    clock)."""

    def __init__(self, seconds: float | None, until: float | None) -> None:
        self._seconds, self._until, self._began = seconds, until, time.monotonic()

    def is_over(self, received: int) -> bool:
        """Return whether the time is over, given how many bytes of logs were received."""
        now = time.monotonic()
        if self._until is not None and now >= self._until:
            return True
        return self._seconds is not None and now - self._began >= self._seconds + extra_s(received)

    def errors(self, nodes: Sequence[Node]) -> Iterator[Outcome[None]]:
        """Yield the error of each node on which the run has not ended."""
        for node in nodes:
            error = UnreachableError(
                f"{node.label}: the run has not ended there after {time.monotonic() - self._began:.0f} s",
                hint="its log so far is kept: gpucourse status, then gpucourse cancel",
            )
            yield Outcome(node=node, error=error)


class LogLimits:
    """The logs that a run under Slurm may have: of `hosts` and of the `ranks` that were planned. `head` is the node that sends
    them. `hosts` is None on a cluster that is not a lab, because no inventory lists its machines: then only their number is
    limited.

    Both numbers are doubled: a job that Slurm puts back into its queue may start again on other nodes.
    """

    def __init__(self, head: str, ranks: int, hosts: Collection[str] | None) -> None:
        self._head, self._ranks, self._hosts = head, ranks, hosts
        self._most_hosts = 2 * ranks if hosts is None else len({*hosts, head})
        self._known: set[tuple[str, int | None]] = set()
        self._hosts_known: set[str] = set()

    @property
    def most_logs(self) -> int:
        """How many logs there may be: one for each rank, one for each host's launcher, and the head's."""
        return min(2 * self._ranks + self._most_hosts + 1, MOST_LOGS)

    def keep(self, node: str, rank: int | None) -> None:
        """Count a log that is on this computer already."""
        self._known.add((node, rank))
        if node != self._head:
            self._hosts_known.add(node)

    def admit(self, node: str, rank: int | None) -> None:
        """Accept the log of a rank (None: of the launcher) on a host. Raises ValueError if the run cannot have it."""
        if self._hosts is not None and node not in {*self._hosts, self._head}:
            raise ValueError(f"{node} is not a node of this lab")
        if rank is not None and rank >= self._ranks:
            raise ValueError(f"there is no rank {rank}: {self._ranks} were started")
        if node not in {*self._hosts_known, self._head} and len(self._hosts_known) >= self._most_hosts:
            raise ValueError(f"{node} is one host more than the {self._most_hosts} that this run can have")
        if (node, rank) not in self._known and len(self._known) >= self.most_logs:
            raise ValueError(f"this run can have {self.most_logs} logs, and this is one more")
        self.keep(node, rank)
