"""Judge a repaired copy: requests arrive when users send them, however slow the service is."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("four L4s get 40 requests a second, and {percent:.0f} % of them meet the limits: that is impossible")}
RUNS = {"right": {"overload_percent": 28.6}, "wrong": {"overload_percent": 100.0}}


def judge(part: Part) -> None:
    """Require that a service misses its limits if it gets more work than it can do."""
    if (percent := part.metrics["overload_percent"]) > 60:
        raise part.wrong("still", percent=percent)
    part.note("requests arrive, whatever the service does")
