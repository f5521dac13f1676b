"""Your part of 8.8: how long a prompt waits, how many requests are inside, what they hold, and what a token costs.

You will learn    the two laws of capacity, Pollaczek-Khinchine and Little, and the price of the tokens that arrive in time
You will produce  four formulas, with which a service is sized before it is rented
Try it            gpucourse try 8.8
Your part         the bodies of the four functions; keep their names and parameters
Reading           modules/08-inference-engines/lesson-9-service.md
"""

from __future__ import annotations


def wait_s(per_s: float, service_s: list[float]) -> float:
    """Return the mean seconds that a request waits until it is served, by Pollaczek and Khinchine.

    One server works on one request after the other, in the order in which they arrive: `per_s` a second, at random times.
    `service_s` are service times in seconds, each equally likely. If more work arrives than can be done, or exactly as much,
    return infinity.
    """
    raise NotImplementedError("wait_s: how much longer do others wait behind a long service than behind a short one?")


def count_inside(per_s: float, ttft_s: float, tpot_s: float, answer: int) -> float:
    """Return the mean number of requests in the service, by Little's law. A request stays in it until its last token.

    `per_s` requests arrive in a second. Each gets its first token `ttft_s` seconds after it arrives, then the rest of its
    `answer` tokens, one every `tpot_s` seconds.
    """
    raise NotImplementedError("count_inside: how long is one request inside?")


def tokens_held(per_s: float, ttft_s: float, tpot_s: float, prompt: int, answer: int) -> float:
    """Return the mean number of tokens in the caches, for the requests of `count_inside` with `prompt` tokens each.

    Until the first token, a request counts with its whole prompt. From then on it counts with its prompt and the part of its
    answer that exists, which grows evenly from nothing to `answer` tokens.
    """
    raise NotImplementedError("tokens_held: how much of its answer is there, on average over the time of the answer?")


def usd_per_million(usd_per_hour: float, per_s: float, answer: int, good_percent: float) -> float:
    """Return the dollars for a million tokens of answers within the limits.

    The service costs `usd_per_hour`, and answers `per_s` requests a second with `answer` tokens each. `good_percent` of the
    requests meet the limits; the tokens of the others do not count. Return infinity if no request meets them.
    """
    raise NotImplementedError("usd_per_million: how many tokens of an hour arrive within the limits?")
