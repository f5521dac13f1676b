"""Judge a repaired copy: TTFT counts from the arrival of a request."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way(
        "a request arrives at 1 ms, is admitted at 5 ms and has its first token at 9 ms: its TTFT is given as "
        "{result:g} ms, but its user waits for 8 ms"
    )
}


def judge(part: Part) -> None:
    """Judge the TTFT of a request that waited."""
    request = part.call(part.function("Request"), "a", 1_000_000, 10, 2)
    request.admitted_ns, request.token_times_ns = 5_000_000, [9_000_000, 10_000_000]
    result = part.call(part.function("find_ttft_ms"), request)
    if result != 8:
        raise part.wrong("still", result=result)
    part.note("TTFT includes the time in the queue")
