"""Your part of 1.2: the times of an answer, computed from its stream as a client sees it.

You will learn    between which moments TTFT, TPOT and tokens/s are measured, and what in a stream is not a token
You will produce  a `summarise` that is right for any engine's stream
Try it            gpucourse try 1.2
Your part         the body of `summarise`; keep its name and its parameters
Reading           modules/01-basic-gpu/lesson-2-engine.md, "Two ways to time an answer"
"""

from __future__ import annotations

from collections.abc import Sequence


def summarise(sent_s: float, events: Sequence[tuple[float, int]]) -> dict[str, float | None]:
    """Return TTFT, TPOT, the time of the whole answer, and the tokens per second of one streamed answer.

    `sent_s` is when the request was sent, in seconds on the client's clock. `events` are the events of the stream, in order:
    each has its time of arrival on the same clock, and its number of tokens, which is 0 or more. There is at least one token.

    Return a dictionary, with all times in seconds:
    "ttft_s": the time to the first token.
    "e2e_s": the time until the reader has the whole answer.
    "tpot_s": the time per token after the first, or None if the answer has no such token.
    "tok_per_s": the tokens of the answer per second of `e2e_s`.
    """
    raise NotImplementedError("summarise: what happened in the stream between the request and its last event?")
