"""Choose the best batch size, list every size that the measurement cannot rule out, and use the learner's part on a sweep."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from completions import tpot

KNEE = 0.9  # the smallest batch size that reaches this share of the highest throughput is the best setting
Row = Mapping[str, Any]


def choose_best(rows: Sequence[Row]) -> Row | None:
    """Return the row of the smallest batch size that reaches KNEE of the highest throughput, or None if there is no row."""
    top_speed = max((row["output_tok_per_s"] for row in rows), default=0.0)
    return next((row for row in rows if row["output_tok_per_s"] >= KNEE * top_speed), None)


def list_within_spread(rows: Sequence[Row]) -> list[int]:
    """Return the batch sizes that may be the best setting, judging by the slowest and the fastest round of each."""
    if not rows:
        return []
    fastest = max(rows, key=lambda row: row["output_tok_per_s"])
    may = [row["batch"] for row in rows if row["high_tok_per_s"] >= KNEE * fastest["low_tok_per_s"]]
    surely = [row["batch"] for row in rows if row["low_tok_per_s"] >= KNEE * fastest["high_tok_per_s"]]
    return [batch for batch in may if not surely or batch <= surely[0]]


def use_part(_world: object, sweep: dict[str, dict[str, Any]], limit_ms: float) -> dict[str, Any]:
    """Return the results of the learner's functions for a sweep: the p99 of TTFT and TPOT in ms, and the chosen batch size.

    `sweep` has, for each batch size, the tokens/s of each round (`speeds`), and for each request the arrivals of its tokens in
    seconds after it was sent (`arrived`).
    """
    import my_latency

    tails: dict[int, list[float]] = {}
    tpots: dict[int, list[float]] = {}
    for batch, record in sweep.items():
        pairs = [my_latency.latencies(0.0, list(arrived)) for arrived in record["arrived"]]
        ttfts = [pair[0] for pair in pairs]
        tpots[int(batch)] = [pair[1] for pair in pairs]
        tails[int(batch)] = [my_latency.percentile(list(times), 99) for times in (ttfts, tpots[int(batch)])]
    rounds = {int(batch): list(record["speeds"]) for batch, record in sweep.items()}
    return {"tails": tails, "batch": my_latency.choose_batch(rounds, tpots, limit_ms)}


def count_wrong(sweep: Mapping[int, Mapping[str, Any]], answer: Mapping[str, Any], limit_ms: float) -> int:
    """Return how many figures of the learner's part are wrong.

    A p99 is wrong if it is not the time of the right request. A batch size is wrong if its p99 of TPOT is above the limit,
    or if the rounds refute it. The answer None is wrong if a batch size is within the limit.
    """
    wrong_count, within = 0, []
    for batch, record in sweep.items():
        waits = [arrived[0] * 1e3 for arrived in record["arrived"]]
        gaps = [1e3 * (tpot(arrived[-1], arrived[0], len(arrived)) or 0.0) for arrived in record["arrived"]]
        tails = answer["tails"][str(batch)]
        wrong_count += sum(not _is_tail(times, tail) for times, tail in zip((waits, gaps), tails, strict=True))
        within += [batch] if _is_tail(gaps, tails[1]) and tails[1] <= limit_ms else []
    return wrong_count + (not _is_choice({batch: sweep[batch]["speeds"] for batch in within}, answer["batch"]))


def _is_choice(speeds: Mapping[int, Sequence[float]], chosen: int | None) -> bool:
    """Return whether the rounds leave room for this choice, whatever rule made it.

    They do not if the fastest batch size is faster by more than its rounds and those of the choice differ. Nor do they if a
    smaller one is as fast as the fastest: its median is above the slowest third of the rounds of the fastest, and its best
    round reaches their median.
    """
    if chosen not in speeds:
        return chosen is None and not speeds
    own, fastest = speeds[chosen], sorted(max(speeds.values(), key=statistics.median))
    if fastest[0] - max(own) > 2 * max(max(own) - min(own), fastest[-1] - fastest[0]):
        return False
    smaller = [rounds for batch, rounds in speeds.items() if batch < chosen]
    is_as_fast = (
        statistics.median(rounds) >= fastest[len(fastest) // 3] and max(rounds) >= statistics.median(fastest)
        for rounds in smaller
    )
    return not any(is_as_fast)


def _is_tail(times: Sequence[float], tail: float) -> bool:
    """Return whether at least 99 % of the times do not exceed `tail`, and less than 99 % are below it."""
    min_count = 0.99 * len(times) - 1e-9
    at_most_count, below_count = (sum(time <= tail * factor for time in times) for factor in (1 + 1e-9, 1 - 1e-9))
    return at_most_count >= min_count > below_count
