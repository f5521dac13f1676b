"""Solve the allocator of 8.2 without counts: the users of a page are the requests whose table contains it."""

from __future__ import annotations

import math


class NoRoom(Exception):
    """Too few pages are free."""


class Pages:
    """The pages of a cache, as one table for each request."""

    def __init__(self, count: int, size: int) -> None:
        self.count, self.size = count, size
        self.requests: dict[str, tuple[tuple[int, ...], int]] = {}

    def _list_free(self) -> list[int]:
        used = {page for table, _ in self.requests.values() for page in table}
        return [page for page in range(self.count) if page not in used]

    def extend(self, name: str, tokens: int) -> list[tuple[int, int]]:
        table, length = self.requests.get(name, ((), 0))
        whole = length // self.size
        kept, partial = table[:whole], table[whole:]
        others = [table for other, (table, _) in self.requests.items() if other != name]
        alone = all(page not in other for page in partial for other in others)
        table = kept + partial if alone else kept
        pages = math.ceil((length + tokens) / self.size) - len(table)
        free = self._list_free()
        if pages > len(free):
            raise NoRoom
        new = tuple(free[:pages])
        self.requests[name] = table + new, length + tokens
        return [] if alone else [(partial[0], new[0])]

    def slots(self, name: str, first: int, last: int) -> list[int]:
        table, length = self.requests[name]
        every = [page * self.size + place for page in table for place in range(self.size)]
        return every[:length][first:last]

    def fork(self, parent: str, child: str) -> None:
        self.requests[child] = self.requests[parent]

    def free(self, name: str) -> None:
        del self.requests[name]

    def count_free(self) -> int:
        return len(self._list_free())
