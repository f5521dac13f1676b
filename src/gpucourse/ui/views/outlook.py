"""The cost of a lab on AWS, and everything that can end it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpucourse.model.deployment import AwsDeployment
from gpucourse.ui.tables import Cell, Facts, facts
from gpucourse.ui.text import age, hourly, usd

if TYPE_CHECKING:
    from gpucourse.labs.aws.status import Outlook
    from gpucourse.model.cloud import Idle
    from gpucourse.model.deployment import Deployment

SOON_S = 30 * 60


def outlook(deployment: Deployment, forecast: Outlook) -> Facts:
    """Return the cost, the remaining time, and everything that can end the lab."""
    return facts(
        [
            ("account", Cell(f"unknown: {forecast.unknown}", "warn") if forecast.unknown else ""),
            ("instances", ", ".join(f"{node} {state}" for node, state in sorted(forecast.instances.items()))),
            ("cost", f"{usd(forecast.cost_usd)} so far, {hourly(forecast.usd_per_hour)}"),
            ("deadline", _deadline(deployment, forecast)),
            ("idle agent", "\n".join(_idle(forecast))),
            ("backstop", forecast.backstop),
            ("ended", Cell("\n".join(forecast.ended), "warn")),
        ],
        title=deployment.stack,
    )


def clock(moment: str) -> str:
    """Format a recorded time for a person: `2026-11-21 18:00 UTC`."""
    return f"{datetime.fromisoformat(moment).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _deadline(deployment: Deployment, forecast: Outlook) -> Cell:
    end, command = clock(forecast.expires), f"gpucourse extend {deployment.module} 2h"
    if forecast.seconds_left <= 0:
        return Cell(f"passed {age(-forecast.seconds_left)} ago ({end})", "bad")
    if forecast.stopped and isinstance(deployment, AwsDeployment) and deployment.cloud.backstop:
        return Cell(f"{end}, but nothing ends a stopped lab: gpucourse destroy {deployment.module}", "warn")
    return Cell(
        f"in {age(forecast.seconds_left)} ({end}); more time: {command}", "warn" if forecast.seconds_left < SOON_S else ""
    )


def _idle(forecast: Outlook) -> Iterator[str]:
    for node_idle in sorted(forecast.idle, key=lambda idle: idle.node):
        yield f"{node_idle.node}: {_view(node_idle)}"


def _view(node_idle: Idle) -> str:
    if node_idle.busy:
        return f"in use ({', '.join(node_idle.busy)})"
    if node_idle.ends_at is None:
        return "has not been idle yet"
    remaining_s = node_idle.ends_at - time.time()
    return f"idle; will be ended in {age(remaining_s)}" if remaining_s > 0 else "idle for long enough; being ended now"
