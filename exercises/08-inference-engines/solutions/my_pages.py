"""Solve the allocator of 8.2 with a table and a length for each request, and a count of users for each page."""

from __future__ import annotations


class NoRoom(Exception):
    """Too few pages are free."""


class Pages:
    """The pages of a cache."""

    def __init__(self, count: int, size: int) -> None:
        self.size = size
        self.empty = list(range(count))
        self.users = [0] * count
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    def extend(self, name: str, tokens: int) -> list[tuple[int, int]]:
        table, length = self.tables.get(name, []), self.lengths.get(name, 0)
        shared = length % self.size != 0 and self.users[table[-1]] > 1
        missing = -(-(length + tokens) // self.size) - len(table)
        if missing + shared > len(self.empty):
            raise NoRoom
        copies = []
        if shared:
            old, new = table[-1], self._take()
            copies.append((old, new))
            self.users[old] -= 1
            table[-1] = new
        table += [self._take() for _ in range(missing)]
        self.tables[name], self.lengths[name] = table, length + tokens
        return copies

    def _take(self) -> int:
        page = self.empty.pop()
        self.users[page] = 1
        return page

    def slots(self, name: str, first: int, last: int) -> list[int]:
        table = self.tables[name]
        return [table[place // self.size] * self.size + place % self.size for place in range(first, last)]

    def fork(self, parent: str, child: str) -> None:
        self.tables[child], self.lengths[child] = list(self.tables[parent]), self.lengths[parent]
        for page in self.tables[child]:
            self.users[page] += 1

    def free(self, name: str) -> None:
        for page in self.tables.pop(name):
            self.users[page] -= 1
            if self.users[page] == 0:
                self.empty.append(page)
        del self.lengths[name]

    def count_free(self) -> int:
        return len(self.empty)
