"""Your part of 8.8: how long a prompt waits, what the requests inside hold, what a token costs, and how many engines you need.

You will learn    the two laws of capacity, Pollaczek-Khinchine and Little, and the price of the tokens that arrive in time
You will produce  four formulas, and the number of engines that follows from them, before you rent any
Try it            gpucourse try 8.8
Your part         the bodies of the five functions; keep their names and parameters
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


def engines_needed(per_s: float, service_s: list[float], max_wait_s: float, held: float, cache_tokens: int) -> int:
    """Return the fewest engines, at least 1, with which requests wait at most `max_wait_s` seconds on average and fit.

    `per_s` requests a second reach the service, and a router sends each to any of the engines, with equal probability. Each
    engine serves its own requests as in `wait_s`. Together the requests inside hold `held` tokens, divided evenly, and an
    engine has room for `cache_tokens`. `max_wait_s` is above 0.
    """
    raise NotImplementedError("engines_needed: what does one of n engines get of the load, and what are its limits?")
