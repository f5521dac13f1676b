"""Judges a repaired copy: TTFT must start when the request is sent."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a request that waits 2 s and gets its first token 0.1 s later has a TTFT of {measured:.1f} s")}


def judge(part: Part) -> None:
    """Check that the first token comes 2.1 s after the request: 2 s until the answer begins, 0.1 s until its first token."""
    import engine  # beside this file, on the path of the process that judges

    answer = engine.complete(part)
    if abs(answer.ttft_s - 2.1) > 1e-6:
        raise part.wrong("still", measured=answer.ttft_s)
    part.note("a request that waits 2 s and gets its first token 0.1 s later has a TTFT of 2.1 s")
