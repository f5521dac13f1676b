"""Requests of a service: when they arrive, and how long their prompts and answers are. Made up, and the same on every computer.

request_traces.json has tables of 512 quantiles each, in integers. A seeded generator draws places in these tables.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path

from paged_engine import Request

KINDS = ("chat", "documents", "talks", "hot")
SEEDS = {"chat": 1, "documents": 1, "talks": 1, "hot": 2}
_ANSWER_NS = 20_000_000  # a token of an answer, for the time until the next turn of a talk
_THINKING_S = 8
_HOT_DOCUMENTS = 6


@cache
def read_table(name: str) -> tuple[int, ...]:
    """Return a table of request_traces.json: `gaps` has 1,000,000 as its mean, the others hold numbers of tokens."""
    tables = json.loads(Path(__file__).resolve().with_name("request_traces.json").read_text(encoding="utf-8"))["tables"]
    return tuple(tables[name])


def make_trace(kind: str, count: int, per_s: float, seed: int | None = None) -> list[Request]:
    """Return `count` requests, by time of arrival, of which `per_s` arrive in a second (at least 0.001).

    chat: short prompts. documents: long prompts. talks: each turn's prompt is everything before it. hot: most requests are
    questions about a few documents, some of which are more popular than others.
    """
    source, per_1000_s = random.Random(SEEDS[kind] if seed is None else seed), round(per_s * 1000)
    if kind == "talks":
        return _make_talks(source, count, per_1000_s)
    if kind == "hot":
        return _make_hot(source, count, per_1000_s)
    requests, now = list[Request](), 0
    for number in range(count):
        now += _draw(source, "gaps") * 1_000_000 // per_1000_s
        prompt = min(8192, _draw(source, "chat" if kind == "chat" else "document"))
        requests.append(Request(f"r{number:04}", now, prompt, min(512, _draw(source, "answer")), group=number))
    return requests


def _draw(source: random.Random, name: str) -> int:
    return read_table(name)[source.randrange(512)]


def _make_talks(source: random.Random, count: int, per_1000_s: int) -> list[Request]:
    first, last = 1, 8  # turns
    requests, now, talk = list[Request](), 0, 0
    while len(requests) < count:
        now += _draw(source, "gaps") * 1_000_000 // per_1000_s * (first + last) // 2
        time, length = now, 600
        for _ in range(source.randint(first, last)):
            shared = length
            length += _draw(source, "turn")
            answer = min(400, _draw(source, "talk_answer"))
            requests.append(Request(f"r{len(requests):04}", time, length, answer, group=talk, shared_tokens=shared))
            length += answer
            time += _THINKING_S * _draw(source, "gaps") * 1000 + answer * _ANSWER_NS
        talk += 1
    return sorted(requests[:count], key=lambda request: request.arrived_ns)


def _make_hot(source: random.Random, count: int, per_1000_s: int) -> list[Request]:
    lengths = [source.randrange(1500, 4000) for _ in range(_HOT_DOCUMENTS)]
    requests, now = list[Request](), 0
    for number in range(count):
        now += _draw(source, "gaps") * 1_000_000 // per_1000_s
        document = 100 + number
        if source.random() < 0.85:
            document = min(_HOT_DOCUMENTS - 1, int(_HOT_DOCUMENTS * source.random() ** 2.2))
        shared = lengths[document] if document < _HOT_DOCUMENTS else source.randrange(300, 1200)
        prompt = shared + _draw(source, "question")
        answer = min(300, _draw(source, "hot_answer"))
        requests.append(Request(f"r{number:04}", now, prompt, answer, group=document, shared_tokens=shared))
    return requests
