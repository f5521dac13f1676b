"""Solve the prefix cache of 8.4 with a chain of hashes, and with one dictionary as the queue of free pages."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable


def page_keys(tokens: list[int], size: int, salt: str = "") -> list[Hashable]:
    """Return one key for each whole page: the hash of the previous page's key and of the tokens of the page."""
    keys: list[Hashable] = []
    parent = hashlib.sha256(salt.encode()).digest()
    for end in range(size, len(tokens) + 1, size):
        parent = hashlib.sha256(parent + repr(tokens[end - size : end]).encode()).digest()
        keys.append(parent)
    return keys


class PrefixCache:
    """An allocator of pages that finds pages again by their text."""

    def __init__(self, pages: int, size: int) -> None:
        """Make free pages of `size` tokens."""
        self.size = size
        self.free: dict[int, None] = dict.fromkeys(range(pages))
        self.users = [0] * pages
        self.key_of: list[Hashable | None] = [None] * pages
        self.page_of: dict[Hashable, int] = {}
        self.tables: dict[str, list[int]] = {}
        self.salts: dict[str, str] = {}

    def start(self, name: str, tokens: list[int], salt: str = "") -> int | None:
        """Make the table of a new request. Return how many of its tokens are found, or None if there is no room."""
        hits: list[int] = []
        for key in page_keys(tokens, self.size, salt)[: (len(tokens) - 1) // self.size]:
            if key not in self.page_of:
                break
            hits.append(self.page_of[key])
        count = -(-len(tokens) // self.size) - len(hits)
        if count > len(self.free) - sum(page in self.free for page in hits):
            return None
        for page in hits:
            self.free.pop(page, None)
            self.users[page] += 1
        self.tables[name] = hits + [self.take() for _ in range(count)]
        self.salts[name] = salt
        return len(hits) * self.size

    def take(self) -> int:
        """Remove the page that has waited longest from the queue, forget its key, and return it."""
        page = next(iter(self.free))
        del self.free[page]
        key, self.key_of[page] = self.key_of[page], None
        if key is not None:
            del self.page_of[key]
        self.users[page] = 1
        return page

    def computed(self, name: str, tokens: list[int]) -> None:
        """Record keys for the request's whole pages."""
        keys = page_keys(tokens, self.size, self.salts[name])
        for page, key in zip(self.tables[name], keys, strict=False):
            if key not in self.page_of and self.key_of[page] is None:
                self.key_of[page], self.page_of[key] = key, page

    def end(self, name: str) -> None:
        """Append the pages that only this request used to the queue, its last page first."""
        for page in reversed(self.tables.pop(name)):
            self.users[page] -= 1
            if not self.users[page]:
                self.free[page] = None

    def grow(self, name: str, length: int) -> bool:
        """Add pages until the request has room for `length` tokens. Return False, with nothing changed, if too few are free."""
        count = -(-length // self.size) - len(self.tables[name])
        if count > len(self.free):
            return False
        self.tables[name] += [self.take() for _ in range(count)]
        return True

    def count_free(self) -> int:
        """Return the number of free pages."""
        return len(self.free)

    def pages(self, name: str) -> list[int]:
        """Return the table of a request."""
        return self.tables[name]
