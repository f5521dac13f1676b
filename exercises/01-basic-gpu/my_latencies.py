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

    `sent_s` is when the request was sent, in seconds on the client's clock. `events` are the events of the stream, in order.
    Each has its time of arrival on the same clock, and its number of tokens. An event may bring several tokens or none: some
    engines begin with an empty event, and most end with an event that only reports the usage. There is at least one token.

    Return a dictionary:
    "ttft_s": from the request to the first token.
    "e2e_s": from the request to the last token.
    "tpot_s": per token after the first. It is None if there is only one token.
    "tok_per_s": all tokens divided by the time of the whole answer.
    """
    raise NotImplementedError("summarise: which event brought the first token, and which the last?")
