"""Choose the best batch size, list every size that the measurement cannot rule out, and use the learner's part on a sweep."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

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


def is_within(request: Mapping[str, Any], ttft_ms: float, tpot_ms: float) -> bool:
    """Return whether a request keeps both limits."""
    return request["ttft_ms"] <= ttft_ms and (request["tpot_ms"] is None or request["tpot_ms"] <= tpot_ms)


def compute_good_percent(requests: Sequence[Mapping[str, Any]], limits: Mapping[str, float]) -> float:
    """Return the percentage of the requests that keep both limits, which are `ttft_ms` and `tpot_ms`."""
    return 100 * statistics.fmean(is_within(request, limits["ttft_ms"], limits["tpot_ms"]) for request in requests)


def use_part(_world: object, sweep: dict[str, list[Any]], limits: Mapping[str, float]) -> dict[str, Any]:
    """Return the results of the learner's functions for a sweep: the goodput of every round, and the chosen batch size.

    `sweep` has, for each batch size, the requests and the seconds of each round; `limits` has `ttft_ms`, `tpot_ms` and
    `percent`.
    """
    import my_setting

    rounds = {int(batch): [(requests, seconds) for requests, seconds in measured] for batch, measured in sweep.items()}
    ttft_ms, tpot_ms = limits["ttft_ms"], limits["tpot_ms"]
    rates = {
        batch: [my_setting.goodput(requests, seconds, ttft_ms, tpot_ms) for requests, seconds in measured]
        for batch, measured in rounds.items()
    }
    return {"goodput": rates, "batch": my_setting.choose_batch(rounds, ttft_ms, tpot_ms, limits["percent"])}


def count_wrong(sweep: Mapping[int, Sequence[Any]], answer: Mapping[str, Any], limits: Mapping[str, float]) -> int:
    """Return how many figures of the learner's part are wrong.

    All answers of the run have the same length. Only for such answers is the goodput the throughput times the share of requests
    that keep both limits. A batch size is wrong if fewer than `percent` percent of its requests keep both limits, or if the
    rounds refute it. The answer None is wrong if a batch size keeps the promise.
    """
    wrong_count, rates = 0, {}
    for batch, measured in sweep.items():
        speeds = [
            sum(request["tokens"] for request in requests) * compute_good_percent(requests, limits) / 100 / seconds
            for requests, seconds in measured
        ]
        own_speeds = answer["goodput"][str(batch)]
        wrong_count += sum(not math.isclose(own, speed, rel_tol=1e-6) for own, speed in zip(own_speeds, speeds, strict=True))
        if compute_good_percent([request for requests, _ in measured for request in requests], limits) >= limits["percent"]:
            rates[batch] = speeds
    return wrong_count + (not _is_choice(rates, answer["batch"]))


def _is_choice(speeds: Mapping[int, Sequence[float]], chosen: int | None) -> bool:
    """Return whether the rounds leave room for this choice, whatever rule made it.

    They refute it if the fastest batch size is faster by more than its rounds and those of the choice differ. They also refute
    it if a smaller batch size is as fast as the fastest: its median is above the slowest third of the rounds of the fastest,
    and its best round reaches their median.
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
