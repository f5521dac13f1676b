"""Your part of 4.3: choose the batch size of a service that has promised its users two limits.

You will learn    why throughput and percentiles mislead; what goodput counts; when two batch sizes are equally good
You will produce  a `goodput` and a `choose_batch` that are right for any measurement
Try it            gpucourse try 4.3
Your part         the bodies of the two functions; keep their names and parameters
Reading           modules/04-benchmarking/lesson-2-price.md, "Limits for users"
"""

from __future__ import annotations


def goodput(requests: list[dict], seconds: float, ttft_limit_ms: float, tpot_limit_ms: float) -> float:
    """Return the useful tokens per second of one round, which took `seconds`: the tokens of requests that keep both limits.

    A request has "ttft_ms", "tpot_ms" and "tokens", the length of its answer. It keeps a limit if its time is at most that
    limit. "tpot_ms" is None if the answer has one token. Both times are None, and "tokens" is 0, if the engine refused the
    request.
    """
    raise NotImplementedError("goodput: which tokens arrived in time for their user?")


def choose_batch(
    rounds: dict[int, list[tuple[list[dict], float]]], ttft_limit_ms: float, tpot_limit_ms: float, percent: float
) -> int | None:
    """Return the batch size to serve with. Return None if no batch size keeps the promise.

    For each batch size, `rounds` has the rounds that were measured with it: the requests of the round, and its seconds.
    The promise: of all requests with this batch size, at least `percent` percent keep both limits.
    Of the batch sizes that keep it, return the smallest whose goodput is as high as the highest, as far as this measurement can
    tell. The rounds of one batch size differ by chance, and now and then a round is slow or fast by accident. Decide when a
    difference is more than that. There may be one round, or a dozen.
    """
    raise NotImplementedError("choose_batch: by how much do rounds of one batch size differ, and by how much those of two?")
