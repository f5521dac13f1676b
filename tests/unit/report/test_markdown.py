"""A report as Markdown: the pictures beside it, and a person's texts without mark-up."""

from __future__ import annotations

import re
from html import unescape

from markdown_it import MarkdownIt

from gpucourse.model.report import Picture
from gpucourse.report import markdown
from tests.unit.report.examples import HOSTILE, chapter, report


def test_render_markdown_names_its_pictures(picture: Picture) -> None:
    text, pictures = markdown.render(report(chapter(picture)))
    assert re.findall(r"!\[[^]]*]\(([^)]+)\)", text.decode()) == list(pictures) == ["compute-1.png"]
    assert pictures["compute-1.png"] == picture.png
    assert "\\<script\\>" in text.decode() or "\\<script>" in text.decode()


WORDS = f"""{HOSTILE} <img src=x onerror=alert(1)> ![p](http://evil/p.png)
[r]: http://evil
![r] <http://evil> `code` ~~~ # no title $x$ \\<b>

- a list"""


def test_render_markdown_shows_what_a_person_wrote_as_text(picture: Picture) -> None:
    text = markdown.render(report(chapter(picture, words=WORDS)))[0].decode()
    html = MarkdownIt("commonmark").render(text)  # it leaves HTML as it is
    assert re.findall(r"<(?:img|script|a|b)\b[^>]*>", html) == ['<img src="compute-1.png" alt="Peak" />']
    for line in WORDS.splitlines()[:3]:
        assert line in unescape(html)
    assert "<li>a list</li>" in html
