"""Your part of 8.3: what it costs to preempt a request, in two ways.

You will learn    when an engine throws keys and values away and computes them again, and when it swaps them out to the host
You will produce  two formulas; the run compares them for requests of several lengths
Try it            gpucourse try 8.3
Your part         the bodies of both functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-4-scheduler.md, "What preemption costs"
"""

from __future__ import annotations

from step_clock import Clock


def recompute_ns(tokens: int, clock: Clock) -> float:
    """Return the nanoseconds in which one step computes `tokens` tokens again, none of which is in the cache.

    `clock.ns(rows)` is the time of a step; rows has a pair for each request in it: (tokens in its cache, new tokens).
    """
    raise NotImplementedError("recompute_ns: what is in the cache of a request that was preempted?")


def swap_ns(tokens: int, cache_bytes: int, link_gb_per_s: float, copies_per_token: float, copy_ns: int) -> float:
    """Return the nanoseconds in which the keys and values of `tokens` tokens go to the memory of the host and come back later.

    A token has `cache_bytes` bytes. The link carries `link_gb_per_s` GB/s (10**9 bytes a second) in each direction. In each
    direction, `copies_per_token` copies are started for a token, and each takes `copy_ns` in addition to the time of its bytes.
    """
    raise NotImplementedError("swap_ns: how often does a byte cross the link?")
