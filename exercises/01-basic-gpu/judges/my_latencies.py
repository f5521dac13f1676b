"""Judge my_latencies.py of 1.2 with streams like those of real engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpucourse.judge import Case, Part, Way

Events = Sequence[tuple[float, int]]
KEYS = ("ttft_s", "e2e_s", "tpot_s", "tok_per_s")
WAYS = {
    "empty-event-first": Way(
        "TTFT ends at the first event, which brought no token: engines send it as soon as they receive the request. So this "
        "would make any engine look fast",
        ("with_tokens[0][0] - sent_s", "events[0][0] - sent_s"),
    ),
    "until-the-usage": Way(
        "the answer ends with its last token; the event after that contains only the usage, and comes a little later",
        ("with_tokens[-1][0] - sent_s", "events[-1][0] - sent_s"),
    ),
    "not-from-the-request": Way(
        "{key} begins at the first event, but must begin when the request was sent: your user also waits for queue and prefill",
        ("e2e = with_tokens[-1][0] - sent_s", "e2e = with_tokens[-1][0] - events[0][0]"),
    ),
    "clock-as-duration": Way(
        "{key} is a moment on the clock: subtract the moment at which the request was sent",
        ("ttft = with_tokens[0][0] - sent_s", "ttft = with_tokens[0][0]"),
    ),
    "events-as-tokens": Way(
        "you counted events. One event may bring several tokens, or none: here {events} events brought {tokens} tokens",
        ("sum(count for _, count in with_tokens)", "len(events)"),
    ),
    "events-with-tokens": Way(
        "you counted the events that brought tokens. One of them may bring several: here there are {tokens} tokens in all",
        ("sum(count for _, count in with_tokens)", "len(with_tokens)"),
    ),
    "divided-by-all": Way(
        "TPOT was divided by all {tokens} tokens. The first comes from the prefill, which is in TTFT: {later} came after it",
        ("(tokens - 1) if", "tokens if"),
    ),
    "prefill-in-tpot": Way(
        "TPOT includes the time to the first token: subtract TTFT before you divide, or a long prompt seems to slow down each "
        "token",
        ("(e2e - ttft) / (tokens - 1)", "e2e / (tokens - 1)"),
    ),
    "mean-of-all": Way(
        "this is the time of the whole answer divided by its tokens, 1 / (tokens/s): TPOT is only about tokens after the first",
        ("(e2e - ttft) / (tokens - 1)", "e2e / tokens"),
    ),
    "rate-without-the-wait": Way(
        "tokens/s leaves out the time to the first token: that is the decoding rate, 1 / TPOT. The user waits for the "
        "whole answer",
        ("tokens / e2e", "(tokens - 1) / (e2e - ttft) if tokens > 1 else 1 / ttft"),
    ),
    "milliseconds": Way(
        "{key} is a thousand times too large: it has to be in seconds, as the name says",
        ("ttft = with_tokens[0][0] - sent_s", "ttft = 1000 * (with_tokens[0][0] - sent_s)"),
    ),
    "zero-for-nothing": Way(
        "an answer of a single token has no TPOT. A value of 0 would look like the best possible, and would lower every "
        "mean. Return None",
        ("if tokens > 1 else None", "if tokens > 1 else 0.0"),
    ),
    "missing": Way("{key} is missing: {given}", ('        "tok_per_s": tokens / e2e,\n', "")),
}


def _stream(first: float, gap: float, counts: Sequence[int]) -> list[tuple[float, int]]:
    """Return events at uneven intervals. The clock is at 100 s when they start."""
    return [(round(100 + first + gap * place * (1 + 0.1 * (place % 3)), 6), count) for place, count in enumerate(counts)]


STREAMS: dict[str, tuple[float, Events]] = {
    "5 tokens, one per event": (99.5, _stream(0.3, 0.02, [1] * 5)),
    "an empty event first, the usage last": (99.9, _stream(0.001, 0.25, [0, 1, 1, 1, 1, 1, 1, 0])),
    "several tokens per event": (100.0, _stream(0.1, 0.03, [0, 2, 1, 4, 3, 1, 0])),
    "an empty event in the middle": (100.0, _stream(0.2, 0.05, [1, 0, 3, 0, 1])),
    "a single token": (98.0, _stream(0.05, 0.5, [0, 1, 0])),
    "all tokens but one in the first event": (99.0, _stream(0.4, 0.5, [7, 1, 0])),
}
AT_ONCE: tuple[float, Events] = (99.0, _stream(0.4, 0.5, [0, 3]))
"""All tokens arrive in one event. No time passes after the first token, so the other tokens have no rate."""


def judge(part: Part) -> None:
    """Judge each figure of each stream."""
    summarise = part.function("summarise")
    for key in KEYS:
        cases = []
        for name, (sent_s, events) in STREAMS.items():
            answer = part.call(summarise, sent_s, list(events), case=name)
            if not isinstance(answer, Mapping):
                part.compare([Case(name, answer, dict.fromkeys(KEYS, "..."))])
            if key not in answer:
                raise part.wrong("missing", name, key=key, given=f"there is {', '.join(map(str, answer)) or 'nothing'}")
            cases.append(_case(key, name, answer[key], sent_s, events))
        part.compare(cases)
    name = "three tokens in one event"
    tpot = part.call(summarise, AT_ONCE[0], list(AT_ONCE[1]), case=name)["tpot_s"]
    part.compare([_case("tpot_s", name, tpot, *AT_ONCE)])
    part.note(f"all four figures of {len(STREAMS) + 1} streams")


def _case(key: str, name: str, answer: Any, sent_s: float, events: Events) -> Case:
    with_tokens = [(moment, count) for moment, count in events if count]
    tokens = sum(count for _, count in with_tokens)
    first, last, first_event, last_event = with_tokens[0][0], with_tokens[-1][0], events[0][0], events[-1][0]
    right = _figures(tokens, first - sent_s, last - sent_s)
    is_single = tokens == 1
    ways = {
        "ttft_s": {"empty-event-first": first_event - sent_s, "not-from-the-request": first - first_event},
        "e2e_s": {"until-the-usage": last_event - sent_s, "not-from-the-request": last - first_event},
        "tpot_s": {
            "events-as-tokens": _figures(len(events), first - sent_s, last - sent_s)["tpot_s"],
            "events-with-tokens": _figures(len(with_tokens), first - sent_s, last - sent_s)["tpot_s"],
            "divided-by-all": None if is_single else (last - first) / tokens,
            "prefill-in-tpot": None if is_single else (last - sent_s) / (tokens - 1),
            "mean-of-all": None if is_single else (last - sent_s) / tokens,
            "zero-for-nothing": 0.0 if is_single else right["tpot_s"],
        },
        "tok_per_s": {
            "events-as-tokens": len(events) / (last - sent_s),
            "events-with-tokens": len(with_tokens) / (last - sent_s),
            "rate-without-the-wait": 1 / (first - sent_s)
            if is_single
            else (tokens - 1) / (last - first)
            if last > first
            else None,
        },
    }[key]
    ways |= {"milliseconds": right[key] and 1000 * right[key]}
    ways |= {"clock-as-duration": {"ttft_s": first, "e2e_s": last}.get(key, right[key])}
    values = {"key": key, "tokens": tokens, "later": tokens - 1, "events": len(events)}
    return Case(f"{key} of: {name}", answer, right[key], ways, values)


def _figures(tokens: int, ttft: float, e2e: float) -> dict[str, float | None]:
    tpot = (e2e - ttft) / (tokens - 1) if tokens > 1 else None
    return {"ttft_s": ttft, "e2e_s": e2e, "tpot_s": tpot, "tok_per_s": tokens / e2e}
