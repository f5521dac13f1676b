"""Connecting to all nodes of a fleet, and telling who answered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.model.event import NodeEvent

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet


def reach(context: Context, fleet: Fleet) -> None:
    """Connect to every node at once. Raises UnreachableError that names every node that does not answer."""
    from gpucourse.remote.fleet import values

    began = time.monotonic()
    outcomes = fleet.connect()
    seconds = time.monotonic() - began
    for outcome in outcomes:
        detail = outcome.error.what if outcome.error else ""
        context.watch(NodeEvent(node=outcome.node.name, step="ssh", ok=outcome.ok, seconds=seconds, detail=detail))
    values(outcomes)
