"""Your part of 8.4: a prefix cache. Pages of keys and values that were computed for one request serve every request that begins
with the same tokens.

You will learn    what a key of a page must contain, when a page may be found, and which page is given up first
You will produce  an allocator that finds whole pages again; the run compares what it finds with a search through all texts
Try it            gpucourse try 8.4
Your part         `page_keys`, and the methods start, take, computed and end; you may change the other methods as well
Reading           modules/08-inference-engines/lesson-5-prefixes.md
"""

from __future__ import annotations

from collections.abc import Hashable


def page_keys(tokens: list[int], size: int, salt: str = "") -> list[Hashable]:
    """Return one key for each whole page of `size` tokens, in the order of the pages.

    Two keys are equal exactly if their salts are equal and all tokens up to the ends of their pages are equal. `salt` is the
    name of a tenant: a customer whose texts no other customer may find.
    """
    raise NotImplementedError("page_keys: on which tokens do the keys and values in a page depend?")


class PrefixCache:
    """An allocator of pages that finds pages again by their text.

    A page without users waits in a queue of free pages, and can be found there as long as it has its key. Only a page that
    `take` removes from the front of the queue loses its key.
    """

    def __init__(self, pages: int, size: int) -> None:
        """Make `pages` free pages with the numbers 0, 1, ... Each has room for `size` tokens."""
        self.size = size
        self.free: dict[int, None] = dict.fromkeys(range(pages))  # a queue: a dict keeps the order of insertion
        self.users = [0] * pages  # requests that have the page in their table
        self.key_of: list[Hashable | None] = [None] * pages
        self.page_of: dict[Hashable, int] = {}  # the page that can be found by this key
        self.tables: dict[str, list[int]] = {}  # the pages of each request, in the order of its tokens
        self.salts: dict[str, str] = {}

    def start(self, name: str, tokens: list[int], salt: str = "") -> int | None:
        """Make the table of a new request. Return how many of its tokens are found, and need not be computed.

        The table begins with pages that are found, up to the first page that is not found. Pages from `take` follow for all
        other tokens. At least the last token must be computed, so a page is not searched if it ends with this token.

        Return None if there are too few free pages for the request. Then nothing has changed.
        """
        raise NotImplementedError("start: which pages can be found, and how many others does the request need?")

    def take(self) -> int:
        """Remove the page at the front of the queue, which has waited longest. Return its number.

        It can no longer be found, and it has one user.
        """
        raise NotImplementedError("take: what must be forgotten about a page that is given to another text?")

    def computed(self, name: str, tokens: list[int]) -> None:
        """Record keys for the request's pages: the keys and values of all `tokens` have been computed.

        From now on its whole pages can be found. `tokens` are the prompt, or the prompt and an answer. If another page with
        the same text can be found already, that page keeps the key, and this page gets none.
        """
        raise NotImplementedError("computed: which pages get a key?")

    def end(self, name: str) -> None:
        """End a request. Its pages without other users join the end of the queue: its last page first, its first page last."""
        raise NotImplementedError("end: which of its pages are free now?")

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
        """Return the table of a request: its pages in the order of its tokens."""
        return self.tables[name]
