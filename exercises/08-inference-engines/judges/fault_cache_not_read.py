"""Judge a repaired copy: a step reads the keys and values of everything before its new tokens."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("64 tokens that each follow 999 others read {more:,} bytes of cache, but {right:,} are needed"),
}


def judge(part: Part) -> None:
    """Judge the time in which the caches of 64 requests are read."""
    clock = part.call(part.function("Clock"))
    ns = part.call(clock.read_ns, [(999, 1)] * 64)
    read, right = ns * clock.bytes_per_s // 10**9 - clock.weight_bytes, 64 * 1000 * clock.cache_bytes
    if abs(read - right) > clock.bytes_per_s // 10**9 + 1:
        raise part.wrong("still", more=read, right=right)
    part.note("a step reads the whole cache of its requests")
