"""Requests whose texts begin alike, and the tokens that a prefix cache finds: a search through whole texts, without keys.

Tokens are numbers. The texts are random and follow from the puzzle's number; their lengths are made up.
"""

from __future__ import annotations

import random
from bisect import bisect, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

VOCABULARY = 5000
MAX_HEAD, MIN_HEAD = 900, 300  # tokens of the longest and of the shortest beginning that an application sends
ANSWER = 30
USER, TURN_ANSWER = 40, 100  # tokens of a turn of a conversation
ORDERS = ("last page first", "first page first", "newest first", "forgotten")


@dataclass(frozen=True)
class Request:
    """One request: its prompt, the answer that it will get, and the tenant that it belongs to."""

    name: str
    prompt: list[int]
    answer: list[int]
    tenant: str = ""


def draw(chance: random.Random, count: int) -> list[int]:
    """Return `count` random tokens."""
    return [chance.randrange(VOCABULARY) for _ in range(count)]


def make_requests(count: int, applications: int, *, tenants: int = 1, puzzle: int = 1, stamp: str = "") -> list[Request]:
    """Return requests of several applications; each begins with the application's own text, and continues with new tokens.

    Popular applications send more requests. `stamp` puts a different number into each prompt: "front" before it, "behind"
    after the application's text.
    """
    chance = random.Random(puzzle)
    heads = [draw(chance, max(MIN_HEAD, MAX_HEAD - 100 * number)) for number in range(applications)]
    requests = []
    for number in range(count):
        head = heads[int(applications * chance.random() ** 2)]
        new, answer, tenant = draw(chance, chance.randrange(40, 200)), draw(chance, ANSWER), f"t{chance.randrange(tenants)}"
        front, behind = ([VOCABULARY + number] if stamp == place else [] for place in ("front", "behind"))
        prompt = [*front, *head, *behind, *new]
        requests.append(Request(f"q{number}", prompt, answer, tenant))
    return requests


def make_conversation(system: int, turns: int, puzzle: int = 1) -> list[Request]:
    """Return the turns of one conversation. A prompt is the conversation so far, and 40 tokens of the user."""
    chance = random.Random(puzzle)
    text, requests = draw(chance, system), []
    for number in range(turns):
        request = Request(f"turn{number + 1}", text + draw(chance, USER), draw(chance, TURN_ANSWER))
        requests.append(request)
        text = request.prompt + request.answer
    return requests


@dataclass
class Slot:
    """A page of the memory: the text that it ends, as a number, its users, and when it became free."""

    text: int | None = None
    users: int = 0
    freed_at: int = field(default=0)


def search(requests: Sequence[Request], pages: int, size: int, order: str = ORDERS[0]) -> list[int]:
    """Return the tokens that each request finds in a cache of `pages` pages of `size` tokens. Two requests run at a time.

    A request is computed immediately, gets its answer, and ends when the next request has its own. `order` says which free page
    is given up first. Raises ValueError if two requests need more pages.
    """
    names: dict[tuple[str, str], int] = {}  # a number for each whole text
    memory = [Slot(freed_at=place - pages) for place in range(pages)]
    clock, counts, running = 0, [], []
    for request in requests:
        letters = "".join(map(chr, request.prompt + request.answer))
        texts = [names.setdefault((request.tenant, letters[:end]), len(names)) for end in range(size, len(letters) + 1, size)]
        held = {slot.text: slot for slot in memory}
        table: list[Slot] = []
        while (len(table) + 1) * size < len(request.prompt) and texts[len(table)] in held:
            table.append(held[texts[len(table)]])
        counts.append(len(table) * size)
        for slot in table:
            slot.users += 1
        count = -(-len(letters) // size) - len(table)
        free = sorted((slot for slot in memory if not slot.users), key=lambda slot: slot.freed_at, reverse=order == ORDERS[2])
        if count > len(free):
            raise ValueError(f"{pages} pages of {size} tokens are too few for two requests")
        for slot in free[:count]:
            slot.text, slot.users = None, 1
            table.append(slot)
        held_texts = {slot.text for slot in memory}
        for slot, text in zip(table, texts, strict=False):
            if slot.text is None and text not in held_texts:
                slot.text = text
        running.append(table)
        for slot in _end(running.pop(0), order) if len(running) > 1 else ():
            slot.users, clock = slot.users - 1, clock + 1
            slot.freed_at = clock
            if order == ORDERS[3] and not slot.users:
                slot.text = None
    return counts


def _end(table: list[Slot], order: str) -> list[Slot]:
    """Return the pages of a request in the order in which they become free."""
    return table if order == ORDERS[1] else table[::-1]


def find_beginnings(requests: Sequence[Request], size: int) -> list[int]:
    """Return how many tokens in whole pages each prompt shares with an earlier text, if no page is given up."""
    texts: list[str] = []
    counts = []
    for request in requests:
        prompt = request.tenant + "\0" + "".join(map(chr, request.prompt))
        place = bisect(texts, prompt)
        shared = max((count_shared(prompt, other) for other in texts[max(0, place - 1) : place + 1]), default=0)
        tokens = min(shared - len(request.tenant) - 1, len(request.prompt) - 1)
        counts.append(max(0, tokens) // size * size)
        insort(texts, prompt + "".join(map(chr, request.answer)))
    return counts


def count_shared(text: str, other: str) -> int:
    """Return the length of the common beginning of two texts, in letters."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low


def find_percent(requests: Sequence[Request], found: Sequence[int]) -> float:
    """Return the percentage of all prompt tokens that were found."""
    return 100 * sum(found) / sum(len(request.prompt) for request in requests)
