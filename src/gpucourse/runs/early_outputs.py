"""Outputs that are fetched and drawn while torchrun still closes down: once all ranks have succeeded, they write nothing more.

`finish` reports on the run afterwards. If a node reports at the end of the run that its outputs have changed since they were
sent, `finish` asks the nodes again, which send what has changed, and draws again what was drawn from other metrics.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.model.event import Event, NodeEvent, RankEvent, Watcher
from gpucourse.model.record import RunRecord
from gpucourse.remote.fleet import Fleet
from gpucourse.runs import finish

if TYPE_CHECKING:
    from gpucourse.remote.unpack import CollectedOutputs

AT_ONCE_S = 0.5
"""If the end of the ranks is reported so soon, they had mostly ended before: the end of the run follows at once, and `finish`
starts as early."""

STOPPED_S = 1.0
"""The time that a fetch may need to end once it is no longer wanted, before and after its connections are dropped."""


class EarlyOutputs:
    """The early outputs of one run: `watch` observes how its ranks end."""

    def __init__(self, context: Context, fleet: Fleet, record: RunRecord, *, at_once_s: float = AT_ONCE_S) -> None:
        self._events: list[Event] = []
        self._context, self._fleet, self._record = copy(context), fleet, record
        self._context.watch = self._events.append  # what `finish` does not report of them
        # If one rank fails and restarts are left, torchrun also restarts those that have succeeded.
        closes_slowly = record.launcher == "torchrun" and not record.drill and not record.max_restarts
        self._waited_for = set(range(record.world_size)) if closes_slowly else set()
        self._over, self._stopped = threading.Event(), threading.Event()
        self._follows_until = time.monotonic() + at_once_s
        self._thread: threading.Thread | None = None
        self._has_begun = False
        self._collected: CollectedOutputs | None = None

    def watch(self, watcher: Watcher) -> Watcher:
        """Return the watcher; when the last rank has succeeded, the outputs are fetched beside it."""

        def tell(event: Event) -> None:
            watcher(event)
            if isinstance(event, RankEvent) and event.code == 0 and event.rank in self._waited_for:
                self._waited_for.discard(event.rank)
                if not self._waited_for:
                    self._thread = threading.Thread(target=self._fetch, name="early-outputs", daemon=True)
                    self._thread.start()

        return tell

    def wait(self) -> bool:
        """Wait until nothing is fetched or drawn any more; the run has ended. Return whether a fetch had begun."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        return self._has_begun

    def take(self, digests: Mapping[str, str], watch: Watcher) -> CollectedOutputs | None:
        """Return what was fetched, if the nodes' `digests` show that it is all that they have; `watch` then receives the events
        of the fetch. The run has ended, and nothing is fetched any more."""
        if (
            self._collected is None
            or self._collected.unreachable
            or not all(digests.values())
            or digests != self._collected.digests
        ):
            return None
        for event in self._events:
            if isinstance(event, NodeEvent):
                watch(event)
        return self._collected

    def stop(self) -> None:
        """Stop fetching and drawing, and wait until that has ended, for a moment at most. If a node sends nothing, its
        connection is dropped: the caller has no more use for it."""
        self._over.set()
        self._stopped.set()
        if self._thread is None:
            return
        self._thread.join(STOPPED_S)
        if self._thread.is_alive():
            for node in self._fleet.nodes:
                self._fleet.drop(node)
            self._thread.join(STOPPED_S)

    def _fetch(self) -> None:
        if self._over.wait(self._follows_until - time.monotonic()):
            return
        self._has_begun = True
        # If something fails, it fails again in `finish`, which reports it.
        with self._context.guard("fetch outputs before the end"), suppress(GpucourseError, OSError):
            self._collected = finish.fetch_early(self._context, self._fleet, self._record, self._stopped)
            if not self._stopped.is_set():
                finish.draw_early(self._context, self._record)
