"""Render lessons (CommonMark with tables) as HTML. HTML in a lesson is shown as text, and pictures are embedded in the page."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import OptionsDict
from markupsafe import Markup

from gpucourse.ui.text import clean

KINDS = {"svg": "image/svg+xml", "png": "image/png"}
Pictures = Callable[[str], bytes | None]
"""A function that returns the bytes of a picture by its name in the lesson, or None if there is no such picture."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, the anchor that links to it, and the text below it."""

    id: str
    title: str
    level: int
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class LessonPage:
    """One part of a module's lesson as HTML, and its headings in order. `title` is the first heading."""

    title: str
    html: Markup
    headings: tuple[Section, ...] = field(default_factory=tuple)


def render_lesson(text: str, pictures: Pictures, pages: Mapping[str, str] = MappingProxyType({})) -> LessonPage:
    """Return a lesson in Markdown as HTML. If `pictures` does not have a picture, its description is shown instead. `pages`
    maps the files of lessons to their pages; links between lessons point to these pages."""
    parser = _parser()
    tokens = parser.parse(clean(text))
    headings = _mark_headings(tokens)
    html = parser.renderer.render(tokens, parser.options, {"pictures": pictures, "pages": pages})
    return LessonPage(title=headings[0].title if headings else "Lesson", html=Markup(html), headings=headings)  # noqa: S704


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _open_link)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", _close_table)
    return parser


def _mark_headings(tokens: Sequence[Token]) -> tuple[Section, ...]:
    """Give every heading an id, and return the headings, each with the text up to the next heading."""
    headings: list[Section] = []
    words: list[list[str]] = []
    for index, token in enumerate(tokens):
        if token.type == "heading_open":
            title = _text_of(tokens[index + 1])
            name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
            number = sum(heading.id.rpartition("--")[0] == name or heading.id == name for heading in headings)
            anchor = f"{name}--{number + 1}" if number else name
            token.attrSet("id", anchor)
            headings.append(Section(id=anchor, title=title, level=int(token.tag[1:])))
            words.append([])
        elif words and token.type in {"inline", "code_block", "fence"} and tokens[index - 1].type != "heading_open":
            words[-1].append(_text_of(token))
    return tuple(
        Section(id=heading.id, title=heading.title, level=heading.level, words=" ".join(" ".join(section_words).split()))
        for heading, section_words in zip(headings, words, strict=True)
    )


def _text_of(token: Token) -> str:
    """Return the text of a token without its markup."""
    if token.children is None:
        return token.content
    return "".join(" " if child.type == "softbreak" else child.content for child in token.children)


def _render_image(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Return a picture embedded in the page as an image. A browser runs no script in such an image, and loads nothing for
    it."""
    token = tokens[index]
    source = str(token.attrGet("src") or "")
    kind = KINDS.get(source.rpartition(".")[2])
    data = env["pictures"](source) if kind else None
    alternative = Markup.escape(renderer.renderInlineAsText(token.children, options, env))
    if data is None:
        return f"<em>{alternative}</em>"
    return f'<img alt="{alternative}" src="data:{kind};base64,{b64encode(data).decode()}">'


def _open_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: MutableMapping[str, Any]
) -> str:
    """Return the opening tag of a link. A link to another lesson points to the page of that lesson."""
    file, mark, anchor = str(tokens[index].attrGet("href") or "").removeprefix("./").partition("#")
    if file in env["pages"]:
        tokens[index].attrSet("href", f"{env['pages'][file]}{mark}{anchor}")
    return renderer.renderToken(tokens, index, options, env)


def _open_table(*_: object) -> str:
    return '<div class="wide" tabindex="0" role="region" aria-label="Table"><table>\n'


def _close_table(*_: object) -> str:
    return "</table></div>\n"
