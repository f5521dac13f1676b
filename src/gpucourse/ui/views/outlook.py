"""What a lab on AWS costs, and what will end it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpucourse.ui.tables import Cell, Facts, facts
from gpucourse.ui.text import age, hourly, usd

if TYPE_CHECKING:
    from gpucourse.labs.aws.status import Outlook
    from gpucourse.model.cloud import Idle
    from gpucourse.model.deployment import Deployment

SOON_S = 30 * 60


def outlook(deployment: Deployment, seen: Outlook) -> Facts:
    """Return the cost, the time that is left, and everything that can end the lab."""
    return facts(
        [
            ("account", Cell(f"unknown: {seen.unknown}", "warn") if seen.unknown else ""),
            ("instances", ", ".join(f"{node} {state}" for node, state in sorted(seen.instances.items()))),
            ("cost", f"{usd(seen.cost_usd)} so far, {hourly(seen.usd_per_hour)}"),
            ("deadline", _deadline(deployment, seen)),
            ("idle agent", "\n".join(_idle(seen))),
            ("backstop", seen.backstop),
            ("ended", Cell("\n".join(seen.ended), "warn") if seen.ended else ""),
        ],
        title=deployment.stack,
    )


def clock(moment: str) -> str:
    """Format a recorded time for a person: `2026-11-21 18:00 UTC`."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _deadline(deployment: Deployment, seen: Outlook) -> Cell:
    when, more = clock(seen.expires), f"gpucourse extend {deployment.module} 2h"
    if seen.seconds_left <= 0:
        return Cell(f"passed {age(-seen.seconds_left)} ago ({when})", "bad")
    return Cell(f"in {age(seen.seconds_left)} ({when}); more time: {more}", "warn" if seen.seconds_left < SOON_S else "")


def _idle(seen: Outlook) -> Iterator[str]:
    for node_idle in sorted(seen.idle, key=lambda idle: idle.node):
        yield f"{node_idle.node}: {_view(node_idle)}"


def _view(node_idle: Idle) -> str:
    if node_idle.busy:
        return f"in use ({', '.join(node_idle.busy)})"
    if node_idle.ends_at is None:
        return "has not seen it idle yet"
    left = node_idle.ends_at - time.time()
    return f"idle; ends it in {age(left)}" if left > 0 else "idle for long enough; ends it now"
