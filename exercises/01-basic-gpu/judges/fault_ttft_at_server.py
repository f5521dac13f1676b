"""Judge a repaired copy: TTFT must start when the request is sent."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a request that waits 2 s and gets its first token 0.1 s later has a TTFT of {measured:.1f} s")}


def judge(part: Part) -> None:
    """Check that TTFT is 2.1 s: 2 s from the request to the beginning of the answer, and 0.1 s to the first token."""
    import engine  # beside this file, on the path of the process that judges

    answer = engine.complete(part)
    if abs(answer.ttft_s - 2.1) > 1e-6:
        raise part.wrong("still", measured=answer.ttft_s)
    part.note("a request that waits 2 s and gets its first token 0.1 s later has a TTFT of 2.1 s")
