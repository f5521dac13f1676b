"""Judge a repaired copy: caches are empty before the first request."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("the first requests find {percent:.0f} % of their prompts, before they were ever computed")}
RUNS = {"right": {"found_first_percent": 21.7}, "wrong": {"found_first_percent": 39.8}}


def judge(part: Part) -> None:
    """Require that the first requests find few tokens in a cache."""
    if (percent := part.metrics["found_first_percent"]) > 30:
        raise part.wrong("still", percent=percent)
    part.note("caches are empty at the start")
