"""Your part of 8.2: the pages of a cache, which requests share until they write.

You will learn    how an engine finds memory for text of unknown length, and how answers share their prompt without a copy
You will produce  an allocator: tables of pages, a count of users for each page, and copies only if two requests would write
Try it            gpucourse try 8.2
Your part         the bodies of the methods of `Pages`; keep their names and parameters
Reading           modules/08-inference-engines/lesson-3-pages.md
"""

from __future__ import annotations


class NoRoom(Exception):
    """Too few pages are free."""


class Pages:
    """The pages of a cache, and the table of each request: its pages in the order of its text.

    Slot s of the cache is place s % size of page s // size. The place of a token is its number in its request, from 0. The
    engine names requests, and never extends, reads or frees a name that it has not extended or forked before.
    """

    def __init__(self, count: int, size: int) -> None:
        """Begin with `count` free pages, 0 to count - 1, with room for `size` tokens each."""
        raise NotImplementedError("Pages: what must you store about a page, and what about a request?")

    def extend(self, name: str, tokens: int) -> list[tuple[int, int]]:
        """Make room for `tokens` more tokens of the request (1 or more). A new name begins with no tokens.

        The new tokens will be written immediately. A page in which they are written must have no other user: if it has, the
        request gets a copy of it instead. Return the copies that the engine must make first, as (from, to);
        usually there are none.

        Take no more pages than needed. If too few are free, raise NoRoom and change nothing.
        """
        raise NotImplementedError("extend: how many places are free in the last page, and which other requests use it?")

    def slots(self, name: str, first: int, last: int) -> list[int]:
        """Return the slots of the request's tokens at the places first to last - 1."""
        raise NotImplementedError("slots: which page of its table has a place, and where in the page is it?")

    def fork(self, parent: str, child: str) -> None:
        """Begin the request `child` with the text of `parent` so far, in the same pages."""
        raise NotImplementedError("fork: what do the two requests share from now on, and what must each have for itself?")

    def free(self, name: str) -> None:
        """End the request. Pages that no other request uses are free again."""
        raise NotImplementedError("free: which of its pages have no other user?")

    def count_free(self) -> int:
        """Return how many pages are free."""
        raise NotImplementedError("count_free: where do you keep the free pages?")
