"""Compute the share of a cache's memory that holds tokens, for several ways to reserve memory for requests that come and go.

The share is a mean over time: both the tokens in memory and the reserved memory are added up over all steps.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from paged_engine import PagePool, Request

AT_ONCE = 32
EXTRA = 512  # tokens that are reserved for an answer of unknown length
Rule = Callable[[int, int, int], int]
"""The memory, in tokens, for a request: (tokens of its prompt, of its whole answer, tokens so far) -> memory."""


class Holder(Protocol):
    """Memory that requests reserve and release."""

    def grow(self, request: Request, tokens: int) -> bool:
        """Make room for the first `tokens` tokens of the request. Return whether there is enough."""

    def release(self, request: Request) -> None:
        """Free the space of the request."""

    def room(self) -> int:
        """Return how much memory is reserved, in tokens."""


class Reserved:
    """Memory that is reserved by a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._rooms, self._total = rule, dict[str, int](), 0

    def grow(self, request: Request, tokens: int) -> bool:
        """Make room for the first `tokens` tokens of the request. There is always enough."""
        room = self._rule(request.prompt_tokens, request.answer_tokens, tokens)
        self._total += room - self._rooms.get(request.name, 0)
        self._rooms[request.name] = room
        return True

    def release(self, request: Request) -> None:
        """Free the space of the request."""
        self._total -= self._rooms.pop(request.name)

    def room(self) -> int:
        """Return how much memory is reserved, in tokens."""
        return self._total


class OwnPages(PagePool):
    """The pages of the learner's allocator, for the engine and as a Holder."""

    def __init__(self, pages: Any, count: int, size: int) -> None:
        """`pages` is a my_pages.Pages of `count` pages of `size` tokens."""
        self.page_size, self._pages, self._count, self._tokens = size, pages, count, dict[str, int]()

    def count_free(self) -> int:
        """Return how many pages are free."""
        return int(self._pages.count_free())

    def table(self, name: str) -> list[int]:
        """Return the pages of a request, in the order of its text."""
        slots = self._pages.slots(name, 0, self._tokens[name]) if name in self._tokens else []
        return [int(slot) // self.page_size for slot in slots[:: self.page_size]]

    def grow(self, request: Request, tokens: int) -> bool:
        """Make room for the first `tokens` tokens of the request. Return False if too few pages are free."""
        import my_pages

        if (new := tokens - self._tokens.get(request.name, 0)) > 0:
            try:
                self._pages.extend(request.name, new)
            except my_pages.NoRoom:
                return False
            self._tokens[request.name] = tokens
        return True

    def release(self, request: Request) -> None:
        """Free the space of the request."""
        if self._tokens.pop(request.name, 0):
            self._pages.free(request.name)

    def room(self) -> int:
        """Return how much memory is reserved, in tokens."""
        return (self._count - self.count_free()) * self.page_size


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
    """Let the requests come and go, AT_ONCE at a time, each with one token more in each step. Return the percentage of the
    reserved memory that holds tokens, and the mean number of empty places of a request, over all steps."""
    coming, running = deque(requests), list[Request]()
    progress, held, room, steps = dict[str, int](), 0, 0, 0
    while coming or running:
        while coming and len(running) < AT_ONCE:
            running.append(coming.popleft())
        for request in running:
            progress[request.name] = progress.get(request.name, request.prompt_tokens) + 1
            holder.grow(request, progress[request.name])
        held += sum(progress[request.name] for request in running)
        room += holder.room()
        steps += len(running)
        for request in running:
            if progress[request.name] == request.prompt_tokens + request.answer_tokens:
                holder.release(request)
                del progress[request.name]
        running = [request for request in running if request.name in progress]
    return 100 * held / room, (room - held) / steps
