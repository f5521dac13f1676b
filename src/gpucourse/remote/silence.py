"""Find ranks that print nothing, and find out what their processes are doing.

Time is counted on this computer, from the moment when a line arrives, so that the clocks of nodes do not matter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from gpucourse.model.diagnosis import Silence
from gpucourse.model.node import Node
from gpucourse.parallel import try_all
from gpucourse.remote import jobs
from gpucourse.remote.fleet import AT_ONCE, Fleet

_LOOK_S = 1.5
_LAST_BYTES = 4096
_TELLING = 4  # how many silent ranks are named; any others are only counted


@dataclass
class _Rank:
    heard: float
    last: bytes = b""
    ended: bool = False
    kept: Silence | None = None


class SilenceMonitor:
    """A monitor that watches every planned rank of a run for silence.

    `limit_s`: report a rank after this many seconds of silence. If it is None, no rank is reported.
    """

    def __init__(
        self, ranks: Mapping[str, Sequence[int]], limit_s: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit_s = limit_s if ranks else None
        self._clock, self._lock = clock, threading.Lock()
        self._ranks = {(node, rank): _Rank(clock()) for node, numbers in ranks.items() for rank in numbers}

    def note_output(self, node: str, rank: int, data: bytes) -> None:
        """Record that the rank printed `data`."""
        with self._lock:
            rank_state = self._ranks.setdefault((node, rank), _Rank(self._clock()))
            rank_state.heard, rank_state.kept = self._clock(), None
            rank_state.last = (rank_state.last + data)[-_LAST_BYTES:]

    def note_ended(self, node: str, rank: int | None = None) -> None:
        """Record that a rank has ended, so that its silence is not reported. Without `rank`, every rank of the node has
        ended."""
        with self._lock:
            for (host, number), rank_state in self._ranks.items():
                if host == node and rank in {None, number}:
                    rank_state.ended = True

    def list_newly_silent(self) -> list[Silence]:
        """Return the ranks to report now: those that have been silent for longer than the limit, and whose silence has not
        been remembered yet."""
        silent = [] if self.limit_s is None else self.quiet(self.limit_s)
        with self._lock:
            return [silence for silence in silent if self._ranks[silence.node, silence.rank].kept is None]

    def quiet(self, for_s: float) -> list[Silence]:
        """Return every rank that has not ended and has printed nothing for `for_s` seconds."""
        now = self._clock()
        with self._lock:
            ranks = sorted(self._ranks.items(), key=lambda item: item[0][1])
            return [
                Silence(node=node, rank=rank, seconds=round(now - rank_state.heard, 1), last=_last_line(rank_state.last))
                for (node, rank), rank_state in ranks
                if not rank_state.ended and now - rank_state.heard >= for_s
            ]

    def remember(self, silent: Sequence[Silence]) -> None:
        """Remember these silences until their ranks print something again."""
        with self._lock:
            for silence in silent:
                self._ranks[silence.node, silence.rank].kept = silence

    def list_remembered(self) -> list[Silence]:
        """Return the remembered silences of ranks that have printed nothing since."""
        with self._lock:
            kept_states = [rank_state.kept for rank_state in self._ranks.values() if rank_state.kept is not None]
        return sorted(kept_states, key=lambda silence: silence.rank)


def look(fleet: Fleet, run_id: str, silent: Sequence[Silence]) -> list[Silence]:
    """Return the silent ranks. If a rank's node answers quickly, add what the rank's process is doing."""
    doing: dict[int, str] = {}
    node_names = {silence.node for silence in silent}

    def ask(node: Node) -> None:
        doing.update(jobs.list_activities(fleet.link(node), run_id, timeout_s=_LOOK_S))

    calls = [partial(ask, node) for node in fleet.nodes if node.name in node_names]
    try_all(calls, limit=AT_ONCE, within_s=_LOOK_S)  # a node that does not answer must not hold up the others
    states = dict(doing)  # a late answer may still come
    return [
        replace(silence, doing=states.get(silence.rank, "not started" if states and not silence.last else ""))
        for silence in silent
    ]


def sentences(silent: Sequence[Silence]) -> list[str]:
    """Return the sentences for the user. Ranks that wait for other ranks come last."""
    ordered = sorted(silent, key=lambda silence: silence.doing == "waiting")
    lines = [_sentence(silence) for silence in ordered[:_TELLING]]
    if len(ordered) > _TELLING:
        lines.append(f"{len(ordered) - _TELLING} more ranks have been silent for as long")
    return lines


def _sentence(silent: Silence) -> str:
    doing = {
        "stopped": "; its process is stopped by a signal",
        "computing": "; its process is computing",
        "waiting": "; its process is waiting",
        "not started": "; it has not started",
    }.get(silent.doing, "")
    last = f"; its last line: {silent.last}" if silent.last else ""
    return f"rank {silent.rank} on {silent.node} has printed nothing for {silent.seconds:.0f} s{doing}{last}"


def _last_line(data: bytes) -> str:
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""
