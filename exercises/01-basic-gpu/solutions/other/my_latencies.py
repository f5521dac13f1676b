"""Another solution of 1.2: it lists the time of each single token, and computes the figures from this list."""

from __future__ import annotations

from collections.abc import Sequence


def summarise(sent_s: float, events: Sequence[tuple[float, int]]) -> dict[str, float | None]:
    """Return TTFT, TPOT, the time of the whole answer, and its tokens per second."""
    first, *later = (moment - sent_s for moment, count in events for _ in range(count))
    times: dict[str, float | None] = {"ttft_s": first, "e2e_s": first, "tpot_s": None, "tok_per_s": 1 / first}
    if later:
        times |= {"e2e_s": later[-1], "tpot_s": (later[-1] - first) / len(later), "tok_per_s": (1 + len(later)) / later[-1]}
    return times
