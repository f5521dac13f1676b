"""Solve the prefix cache of 8.4 with a tree whose edges are the tokens of a page, and a queue that skips pages in use."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


def page_keys(tokens: list[int], size: int, salt: str = "") -> list:
    """Return one key for each whole page: all tokens up to its end."""
    return [(salt, tuple(tokens[:end])) for end in range(size, len(tokens) + 1, size)]


@dataclass
class Node:
    """One text in the tree: the page that ends it, if one can be found, and the texts that are a page longer."""

    page: int | None = None
    longer: dict[tuple[int, ...], Node] = field(default_factory=dict)


class PrefixCache:
    """An allocator of pages that finds pages again in a tree for each tenant."""

    def __init__(self, pages: int, size: int) -> None:
        """Make free pages of `size` tokens."""
        self.size, self.trees = size, {}
        self.queue = deque((page, 0) for page in range(pages))  # with the number of the wait: only the newest counts
        self.waits = [0] * pages
        self.users, self.node_of = [0] * pages, [None] * pages
        self.tables, self.salts = {}, {}

    def walk(self, tokens: list[int], salt: str) -> list[Node]:
        """Return the nodes of all whole pages, and create those that the tree lacks."""
        nodes, node = [], self.trees.setdefault(salt, Node())
        for begin in range(0, len(tokens) - self.size + 1, self.size):
            node = node.longer.setdefault(tuple(tokens[begin : begin + self.size]), Node())
            nodes.append(node)
        return nodes

    def start(self, name: str, tokens: list[int], salt: str = "") -> int | None:
        """Make the table of a new request. Return how many of its tokens are found, or None if there is no room."""
        hits = []
        for node in self.walk(tokens[:-1], salt):
            if node.page is None:
                break
            hits.append(node.page)
        pages = (len(tokens) + self.size - 1) // self.size
        if pages - len(hits) > self.count_free() - sum(not self.users[page] for page in hits):
            return None
        for page in hits:
            self.users[page] += 1
        self.tables[name], self.salts[name] = list(hits), salt
        while len(self.tables[name]) < pages:
            self.tables[name].append(self.take())
        return self.size * len(hits)

    def take(self) -> int:
        """Remove the page that has waited longest from the queue, forget its text, and return it."""
        while True:
            page, wait = self.queue.popleft()
            if not self.users[page] and self.waits[page] == wait:
                break
        if self.node_of[page]:
            self.node_of[page].page = self.node_of[page] = None
        self.users[page] = 1
        return page

    def computed(self, name: str, tokens: list[int]) -> None:
        """Record the whole pages of the request, so that they can be found."""
        for page, node in zip(self.tables[name], self.walk(tokens, self.salts[name]), strict=False):
            if node.page is None and self.node_of[page] is None:
                node.page, self.node_of[page] = page, node

    def end(self, name: str) -> None:
        """Append the pages that only this request used to the queue, its last page first."""
        for page in self.tables.pop(name)[::-1]:
            self.users[page] -= 1
            if self.users[page] == 0:
                self.waits[page] += 1
                self.queue.append((page, self.waits[page]))

    def grow(self, name: str, length: int) -> bool:
        """Add pages until the request has room for `length` tokens. Return False, with nothing changed, if too few are free."""
        table = self.tables[name]
        if -(-length // self.size) - len(table) > self.count_free():
            return False
        while len(table) * self.size < length:
            table.append(self.take())
        return True

    def count_free(self) -> int:
        """Return the number of free pages."""
        return self.users.count(0)

    def pages(self, name: str) -> list[int]:
        """Return the table of a request."""
        return self.tables[name]
