"""A solution of 1.2: it counts only events that brought tokens, and measures from the moment when the request is sent."""

from __future__ import annotations

from collections.abc import Sequence


def summarise(sent_s: float, events: Sequence[tuple[float, int]]) -> dict[str, float | None]:
    """Return TTFT, TPOT, the time of the whole answer, and its tokens per second."""
    with_tokens = [(moment, count) for moment, count in events if count]
    tokens = sum(count for _, count in with_tokens)
    ttft = with_tokens[0][0] - sent_s
    e2e = with_tokens[-1][0] - sent_s
    return {
        "ttft_s": ttft,
        "e2e_s": e2e,
        "tpot_s": (e2e - ttft) / (tokens - 1) if tokens > 1 else None,
        "tok_per_s": tokens / e2e,
    }
