"""Your part of 4.3: find the setting that a service should run with, from the times at which tokens arrived.

You will learn    the exact meaning of TTFT, TPOT and p99; how to choose a batch size within a limit; when two are equally good
You will produce  a `percentile`, a `latencies` and a `choose_batch` that are right for any measurement
Try it            gpucourse try 4.3
Your part         the bodies of the three functions; keep their names and parameters. `choose_batch` needs `percentile`
Reading           modules/04-benchmarking/lesson-2-price.md, "Throughput has a price"
"""

from __future__ import annotations


def percentile(values: list[float], percent: float) -> float:
    """Return the nearest-rank percentile: the smallest of `values` that at least `percent` percent of them do not exceed.

    `percent` is above 0 and at most 100. `values` may be in any order. The result is one of them: nothing is interpolated.
    """
    raise NotImplementedError("percentile: how many values must be at most as large as the one that you return?")


def latencies(sent_s: float, arrived_s: list[float]) -> tuple[float, float | None]:
    """Return TTFT and TPOT of one request, in milliseconds.

    `sent_s` is when the request was sent, `arrived_s` when each of its tokens arrived, in seconds on the same clock.
    TTFT is the time to the first token. TPOT is the mean time from one token to the next, or None if there is only one token.
    """
    raise NotImplementedError("latencies: how many gaps are there between the tokens?")


def choose_batch(rounds: dict[int, list[float]], tpots_ms: dict[int, list[float]], limit_ms: float) -> int | None:
    """Return the batch size to serve with, so that requests keep within the limit.

    For each batch size, `rounds` has the tokens a second of each round, and `tpots_ms` has the TPOT of each request.
    A batch size is within the limit if the 99th percentile of its TPOT is at most `limit_ms`. Return None if none is.
    Of those within the limit, return the smallest that is as fast as the fastest, as far as this measurement can tell: with a
    smaller batch, requests wait less. The rounds of one batch size differ by chance, and now and then a round is slow or fast
    by accident. Decide when a difference is more than that. There may be one round, or a dozen.
    """
    raise NotImplementedError("choose_batch: by how much do rounds of one batch size differ, and by how much those of two?")
