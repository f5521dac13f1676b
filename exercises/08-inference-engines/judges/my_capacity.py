"""Judge my_capacity.py of 8.8 on exact numbers: waits, requests inside, tokens held, prices, and numbers of engines."""

from __future__ import annotations

import math
from typing import Any

from gpucourse.judge import Case, Part, Way

IN_32_BITS = 1e-6  # a tensor may have no more
WAYS = {
    "all-times-equal": Way(
        "{given} s instead of {right} s: you used the square of the mean. Long prompts delay all requests behind them, so the"
        " formula has the mean of the squares, {square:.3g} s²",
        ("square = sum(time**2 for time in service_s) / len(service_s)", "square = mean**2"),
    ),
    "exponential-times": Way(
        "{given} s instead of {right} s: that is the wait if the service times are exponential. Use the mean of their squares",
        ("square = sum(time**2 for time in service_s) / len(service_s)", "square = 2 * mean**2"),
    ),
    "without-the-half": Way(
        "{given} s instead of {right} s, twice as much: on average you arrive in the middle of a service",
        ("return per_s * square / (2 * (1 - use))", "return per_s * square / (1 - use)"),
    ),
    "variance": Way(
        "{given} s instead of {right} s: you used the variance. The second moment is the mean of the squares, E[S²], in which "
        "the mean counts too",
        ("/ len(service_s)\n    use", "/ len(service_s) - mean**2\n    use"),
    ),
    "until-the-end": Way(
        "{given} s instead of {right} s: that is the time until the service ends. The wait ends when it begins",
        ("return per_s * square / (2 * (1 - use))", "return per_s * square / (2 * (1 - use)) + mean"),
    ),
    "without-the-free-share": Way(
        "{given} s instead of {right} s: at a use of {use:.0%}, a queue shrinks only in the {free:.0%} of the time that "
        "is free. Divide by this share",
        ("return per_s * square / (2 * (1 - use))", "return per_s * square / 2"),
    ),
    "past-one": Way(
        "{given} s at a use of {use:.0%}: if as much work arrives as can be done, or more, the wait is infinite",
        ("    if use >= 1:\n        return float(\"inf\")\n", "    if use == 1:\n        use = 0.999999\n"),
    ),
    "inside-without-ttft": Way(
        "{given} requests inside instead of {right}: a request is inside as soon as it arrives, not only from its first token",
        ("return per_s * (ttft_s + (answer - 1) * tpot_s)", "return per_s * (answer - 1) * tpot_s"),
    ),
    "one-gap-too-many": Way(
        "{given} requests inside instead of {right}: between {answer} tokens there are {gaps} gaps",
        ("return per_s * (ttft_s + (answer - 1) * tpot_s)", "return per_s * (ttft_s + answer * tpot_s)"),
    ),
    "prompt-only": Way(
        "{given} tokens held instead of {right}: the keys of an answer stay in the cache too",
        ("tpot_s * (prompt + answer / 2))", "tpot_s * prompt)"),
    ),
    "whole-answer": Way(
        "{given} tokens held instead of {right}: an answer grows, and on average half of it is in the cache",
        ("tpot_s * (prompt + answer / 2))", "tpot_s * (prompt + answer))"),
    ),
    "all-tokens": Way(
        "{given} dollars instead of {right}: {bad:.0f} % of the answers came too late, and their tokens do not count",
        ("good = per_s * 3600 * answer * good_percent / 100", "good = per_s * 3600 * answer"),
    ),
    "good-times-dollars": Way(
        "{given} dollars instead of {right}: if fewer tokens are good, a good one costs more, not less",
        ("return usd_per_hour / good * 1e6", "return usd_per_hour / (per_s * 3600 * answer) * 1e6 * good_percent / 100"),
    ),
    "memory-ignored": Way(
        "{given} engines instead of {right}: the wait is short enough, but {held:,} tokens need room, and {given} engines have "
        "room for {room:,}",
        (" or held > count * cache_tokens", ""),
    ),
    "wait-ignored": Way(
        "{given} engines instead of {right}: the tokens have room, but requests wait longer than {max_wait} s on average",
        ("wait_s(per_s / count, service_s) > max_wait_s or ", ""),
    ),
    "wait-divided": Way(
        "{given} engines instead of {right}: with n engines the wait is not an n-th. Each of them gets an n-th of the load, "
        "so its use falls too",
        ("wait_s(per_s / count, service_s) > max_wait_s", "wait_s(per_s, service_s) / count > max_wait_s"),
    ),
    "busy-but-finite": Way(
        "{given} engines instead of {right}: each of them is busy for less than all of the time, so the wait is finite, but "
        "longer than {max_wait} s",
        ("wait_s(per_s / count, service_s) > max_wait_s", "per_s / count * sum(service_s) / len(service_s) >= 1"),
    ),
}  # fmt: skip

QUEUES = (
    (3.0, [0.05, 0.1, 0.1, 0.2, 0.8]),
    (0.5, [1.0]),
    (1.9, [0.5, 0.5]),
    (0.0, [0.3, 0.4]),
    (2.0, [0.1, 0.9]),
    (4.0, [0.1, 0.9]),
)
SERVICES = ((6.0, 0.4, 0.035, 900, 150), (2.5, 1.2, 0.05, 4000, 1), (0.0, 1.0, 0.02, 100, 10), (40.0, 0.2, 0.01, 300, 700))
FLEETS = (
    (1.8, [0.1, 0.9], 0.5, 1000.0, 30_000),
    (6.0, [0.05, 0.1, 0.1, 0.2, 0.8], 0.3, 1000.0, 30_000),
    (2.0, [0.1, 0.9], 5.0, 90_001.0, 30_000),
    (2.0, [0.1, 0.9], 0.2, 90_000.0, 30_000),
    (0.0, [0.3], 0.1, 0.0, 1000),
    (9.0, [0.4], 0.06, 70_000.0, 20_000),
)
PRICES = ((6.88, 9.0, 150, 93.0), (0.8048, 1.5, 110, 100.0), (12.0, 4.0, 200, 50.0), (3.0, 2.0, 100, 0.0))


def judge(part: Part) -> None:
    """Judge each formula on several numbers, some of which are at a limit."""
    wait_s, inside = part.function("wait_s"), part.function("count_inside")
    tokens_held, usd_per_million = part.function("tokens_held"), part.function("usd_per_million")
    engines_needed = part.function("engines_needed")
    part.compare([_make_wait(part, wait_s, *queue) for queue in QUEUES], tolerance=IN_32_BITS)
    part.compare([_make_inside(part, inside, *service) for service in SERVICES], tolerance=IN_32_BITS)
    part.compare([_make_held(part, tokens_held, *service) for service in SERVICES], tolerance=IN_32_BITS)
    part.compare([_make_price(part, usd_per_million, *price) for price in PRICES], tolerance=IN_32_BITS)
    cases = [_make_fleet(part, engines_needed, *FLEETS[0])]
    if cases[0].given == cases[0].ways["wait-divided"]:  # such a search would not end in the others
        part.compare(cases)
    cases += [_make_fleet(part, engines_needed, *fleet) for fleet in FLEETS[1:]]
    part.compare(cases, tolerance=IN_32_BITS)
    part.note(
        f"{len(QUEUES)} queues, {len(SERVICES)} services and {len(PRICES)} prices, to six digits, and {len(FLEETS)} numbers of "
        "engines"
    )


def _make_wait(part: Part, wait_s: Any, per_s: float, times: list[float]) -> Case:
    mean, square = sum(times) / len(times), sum(time * time for time in times) / len(times)
    use = per_s * mean
    name = f"{per_s:g} a second, service times {', '.join(map(str, times))} s: a use of {use:.0%}"
    result = part.call(wait_s, per_s, list(times), case=name)
    values = {"square": square, "use": use, "free": 1 - use}
    if use >= 1:
        if isinstance(result, (int, float)) and abs(result) < 1e300:
            raise part.wrong("past-one", name, given=f"{result:.4g}", **values)
        return Case(name, result, math.inf)

    def wait(second: float) -> float:
        return per_s * second / (2 * (1 - use))

    ways = {
        "all-times-equal": wait(mean**2), "exponential-times": wait(2 * mean**2), "without-the-half": 2 * wait(square),
        "variance": wait(square - mean**2), "until-the-end": wait(square) + mean, "without-the-free-share": per_s * square / 2,
    }  # fmt: skip
    return Case(name, result, wait(square), ways, values)


def _make_inside(part: Part, inside: Any, per_s: float, ttft_s: float, tpot_s: float, _prompt: int, answer: int) -> Case:
    name = f"{per_s:g} a second, TTFT {ttft_s} s, TPOT {tpot_s} s, answers of {answer} tokens"
    result = part.call(inside, per_s, ttft_s, tpot_s, answer, case=name)
    ways = {"inside-without-ttft": per_s * (answer - 1) * tpot_s, "one-gap-too-many": per_s * (ttft_s + answer * tpot_s)}
    return Case(name, result, per_s * (ttft_s + (answer - 1) * tpot_s), ways, {"answer": answer, "gaps": answer - 1})


def _make_held(part: Part, tokens_held: Any, per_s: float, ttft_s: float, tpot_s: float, prompt: int, answer: int) -> Case:
    name = f"{per_s:g} a second, TTFT {ttft_s} s, TPOT {tpot_s} s, prompts of {prompt} and answers of {answer} tokens"
    result = part.call(tokens_held, per_s, ttft_s, tpot_s, prompt, answer, case=name)
    reading = (answer - 1) * tpot_s

    def held(of_answer: float) -> float:
        return per_s * (ttft_s * prompt + reading * (prompt + of_answer))

    return Case(name, result, held(answer / 2), {"prompt-only": held(0), "whole-answer": held(answer)})


def _make_price(part: Part, usd_per_million: Any, usd: float, per_s: float, answer: int, good_percent: float) -> Case:
    name = f"{usd} dollars an hour, {per_s:g} a second, answers of {answer} tokens, {good_percent:g} % within the limits"
    result = part.call(usd_per_million, usd, per_s, answer, good_percent, case=name)
    every = usd / (per_s * 3600 * answer) * 1e6
    right = every * 100 / good_percent if good_percent else math.inf
    ways = {"all-tokens": every, "good-times-dollars": every * good_percent / 100 if good_percent else math.inf}
    return Case(name, result, right, ways, {"bad": 100 - good_percent})


def _make_fleet(
    part: Part, engines_needed: Any, per_s: float, times: list[float], max_wait_s: float, held: float, room: int
) -> Case:
    mean, square = sum(times) / len(times), sum(time * time for time in times) / len(times)
    name = (
        f"{per_s:g} a second, service times {', '.join(map(str, times))} s, a wait of at most {max_wait_s} s, {held:,.0f} "
        f"tokens, and room for {room:,} on each engine"
    )
    result = part.call(engines_needed, per_s, list(times), max_wait_s, held, room, case=name)

    def wait_s(count: int) -> float:
        rate = per_s / count
        return rate * square / (2 * (1 - rate * mean)) if rate * mean < 1 else math.inf

    by_use = next(count for count in range(1, 100) if wait_s(count) < math.inf)
    by_wait = next(count for count in range(1, 100) if wait_s(count) <= max_wait_s)
    by_memory = max(1, math.ceil(held / room))
    ways: dict[Any, Any] = {
        "memory-ignored": by_wait, "wait-ignored": by_memory, "busy-but-finite": max(by_use, by_memory)
    }  # fmt: skip
    if wait_s(1) < math.inf:
        ways["wait-divided"] = max(math.ceil(wait_s(1) / max_wait_s), by_memory)
    given_room = int(result) * room if isinstance(result, (int, float)) and math.isfinite(result) else 0
    return Case(name, result, max(by_wait, by_memory), ways, {"held": round(held), "room": given_room, "max_wait": max_wait_s})
