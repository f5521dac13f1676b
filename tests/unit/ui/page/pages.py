"""The pages of a workspace, built in memory, and what is on them."""

from __future__ import annotations

from html.parser import HTMLParser

from gpucourse.learning.pages.open_ import open_
from gpucourse.ui.page.build import build
from tests.learning import Learning

HOSTILE = "</pre></title></style>\"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}\x1b]0;own\x07"


def pages_of(learning: Learning) -> dict[str, str]:
    """Return every file of the page, by its path."""
    context = learning.open_context()
    return {name: data.decode() for name, data in build(context, open_(context))}


class Reader(HTMLParser):
    """The contents of a page: its tags with their attributes, its links, its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def count(self, tag: str) -> int:
        """Return the number of tags of that name."""
        return sum(name == tag for name, _ in self.tags)

    @property
    def links(self) -> list[str]:
        """Return the targets of the page's links."""
        return [str(attributes["href"]) for tag, attributes in self.tags if tag == "a"]
