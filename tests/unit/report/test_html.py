"""A report as HTML: one file that fetches nothing."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser

import pytest

from gpucourse.model.report import LOCAL, Picture
from gpucourse.report import html, markdown
from tests.unit.report.examples import HOSTILE, chapter, report


class Page(HTMLParser):
    """A parsed page: its text, its tags, and the addresses that a browser would fetch."""

    VOID = frozenset({"meta", "link", "br", "img", "use", "path", "rect", "defs"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in {"src", "href"} and tag != "use"]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_render_html_is_one_file_that_fetches_nothing(picture: Picture) -> None:
    text = html.render(report(chapter(picture))).decode()
    page = Page(text)
    assert len(page.fetched) == 1
    assert page.fetched[0].startswith("data:image/svg+xml;base64,"), "the picture is in the file"
    assert "script" not in page.tags
    drawing = b64decode(page.fetched[0].partition(",")[2])
    assert drawing == picture.svg
    assert b"url(http" not in drawing
    assert "url(http" not in text
    page_text = " ".join(" ".join(page.words).split())
    for words in ("GPU benchmark report", "Ada Example", "Tesla T4", HOSTILE, "– not measured", "20310504-101112-otter"):
        assert words in page_text
    assert "Take the L4." in text
    assert "<code>gpucourse run 4.3</code>" in text


@pytest.mark.parametrize("mode", ["local", "aws"])
def test_render_names_simulated_nodes_at_the_top(picture: Picture, mode: str) -> None:
    content = report(chapter(picture), mode=mode)
    assert (LOCAL in unescape(html.render(content).decode())) == (mode == "local")
    assert (LOCAL in markdown.render(content)[0].decode()) == (mode == "local")


def test_make_policy_allows_one_style_and_one_script_by_their_digests() -> None:
    style = b64encode(sha256(b"p {}").digest()).decode()
    assert f"style-src 'sha256-{style}'" in html.make_policy("p {}")
    assert "script-src 'none'" in html.make_policy("p {}")
    script = b64encode(sha256(b"run()").digest()).decode()
    assert f"script-src 'sha256-{script}'" in html.make_policy("p {}", "run()")
