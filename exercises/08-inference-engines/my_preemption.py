"""Your part of 8.3: what it costs to preempt a request, in two ways.

You will learn    when an engine throws keys and values away and computes them again, and when it swaps them out to the host
You will produce  the costs of both ways; the run compares them for several lengths, alone and beside other requests
Try it            gpucourse try 8.3
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-4-scheduler.md, "What preemption costs"
"""

from __future__ import annotations

from step_clock import Clock

Rows = list[tuple[int, int]]


def recompute_ns(tokens: int, rows: Rows, clock: Clock) -> float:
    """Return how many nanoseconds longer a step takes if it also computes `tokens` tokens of a preempted request again.

    `rows` are the other requests of the step, with a pair for each: (tokens in its cache, new tokens). Without other requests,
    there would be no step. `clock.ns(rows)` is the time of a step. None of the `tokens` tokens is in the cache.
    """
    raise NotImplementedError("recompute_ns: what would the step cost anyway, and what is in the cache of this request?")


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds in which the keys and values of `tokens` tokens go to the memory of the host and come back later.

    A token has `cache_bytes` bytes. The link carries `link_gb_per_s` GB/s (10**9 bytes a second) in each direction. In each
    direction, `copies_per_token` copies are started for a token, and each takes `copy_ns` in addition to the time of its bytes.
    """
    raise NotImplementedError("swap_ns: how often does a byte cross the link?")
