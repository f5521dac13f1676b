"""Judge a repaired copy: the share that is found counts tokens, not requests."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("two prompts of 100 and 300 tokens find 20 and 0 tokens, which is 5 % of all tokens, not {percent:.1f}")}


def judge(part: Part) -> None:
    """Require the percentage of tokens for requests of different lengths."""
    module = part.module
    requests = [module.Request("a", [0] * 100, []), module.Request("b", [0] * 300, [])]
    percent = part.call(module.find_percent, requests, [20, 0])
    if abs(percent - 5) > 1e-9:
        raise part.wrong("still", percent=percent)
    part.note("20 of 400 tokens are 5 %")
