"""Compute the share of a cache's memory that holds tokens, for several ways to reserve memory for requests that come and go.

The share is taken over time: in every step, the tokens that are held and the room that is taken for them are added up.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from engine_sim import Request

AT_ONCE = 32
EXTRA = 512  # tokens that are reserved for an answer of unknown length
Rule = Callable[[int, int, int], int]
"""The memory, in tokens, for a request: (tokens of its prompt, of its whole answer, tokens so far) -> memory."""


class Holder(Protocol):
    """Memory that requests reserve and release."""

    def hold(self, request: Request, tokens: int) -> None:
        """Have room for the first `tokens` tokens of the request."""

    def end(self, request: Request) -> None:
        """Free the room of the request."""

    def room(self) -> int:
        """Return the room, in tokens, that is taken."""


class Reserved:
    """Memory that is reserved by a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._rooms, self._total = rule, dict[str, int](), 0

    def hold(self, request: Request, tokens: int) -> None:
        """Have room for the first `tokens` tokens of the request."""
        room = self._rule(request.prompt_tokens, request.answer_tokens, tokens)
        self._total += room - self._rooms.get(request.name, 0)
        self._rooms[request.name] = room

    def end(self, request: Request) -> None:
        """Free the room of the request."""
        self._total -= self._rooms.pop(request.name)

    def room(self) -> int:
        """Return the room, in tokens, that is taken."""
        return self._total


class OwnPages:
    """Memory in the pages of the learner's allocator."""

    def __init__(self, pages: Any, count: int, size: int) -> None:
        self._pages, self._count, self._size, self._tokens = pages, count, size, dict[str, int]()

    def hold(self, request: Request, tokens: int) -> None:
        """Have room for the first `tokens` tokens of the request."""
        self._pages.extend(request.name, tokens - self._tokens.get(request.name, 0))
        self._tokens[request.name] = tokens

    def end(self, request: Request) -> None:
        """Free the room of the request."""
        self._pages.free(request.name)
        del self._tokens[request.name]

    def room(self) -> int:
        """Return the room, in tokens, that is taken."""
        return (self._count - self._pages.count_free()) * self._size


def list_rules(longest: int, pages: Iterable[int]) -> dict[str, Rule]:
    """Return the ways to reserve memory, by name; `longest` is the longest text that the engine allows."""
    rules: dict[str, Rule] = {
        f"the longest text, {longest:,}": lambda _prompt, _answer, _now: longest,
        f"the prompt and {EXTRA}": lambda prompt, _answer, _now: prompt + EXTRA,
        "the next power of two": lambda prompt, answer, _now: 2 ** math.ceil(math.log2(prompt + answer)),
    }
    return rules | {f"pages of {size}": _make_page_rule(size) for size in pages}


def _make_page_rule(size: int) -> Rule:
    return lambda _prompt, _answer, now: -(-now // size) * size


def follow(requests: Sequence[Request], holder: Holder) -> tuple[float, float]:
    """Let the requests come and go, AT_ONCE at a time, each with one token more in each step. Return the percentage of the room
    that holds tokens, and the mean number of empty places of a request, over all steps."""
    coming, running = deque(requests), list[Request]()
    progress, held, room, steps = dict[str, int](), 0, 0, 0
    while coming or running:
        while coming and len(running) < AT_ONCE:
            running.append(coming.popleft())
        for request in running:
            progress[request.name] = progress.get(request.name, request.prompt_tokens) + 1
            holder.hold(request, progress[request.name])
        held += sum(progress[request.name] for request in running)
        room += holder.room()
        steps += len(running)
        for request in running:
            if progress[request.name] == request.prompt_tokens + request.answer_tokens:
                holder.end(request)
                del progress[request.name]
        running = [request for request in running if request.name in progress]
    return 100 * held / room, (room - held) / steps
