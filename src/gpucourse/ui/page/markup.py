"""The templates of the page. They escape every text; a strict policy protects the reader if an escape was forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from gpucourse import __version__
from gpucourse.report.html import make_policy
from gpucourse.ui.tables import Content, style_of, text_of
from gpucourse.ui.text import clean
from gpucourse.units import now_utc

TEMPLATES = Path(__file__).with_name("templates")
MENU = (
    ("Progress", "index.html"),
    ("Book", "book.html"),
    ("Runs", "runs.html"),
    ("Sweeps", "sweeps.html"),
    ("Costs", "costs.html"),
    ("Report", "report.html"),
)


def render(template: str, *, place: str, title: str, current: str = "", **values: Any) -> bytes:
    """Return a page from its template, as UTF-8. `place` is its path below the page's folder, `current` its menu entry."""
    root = "../" * place.count("/")
    text = environment().get_template(template).render(root=root, title=title, current=current or place, **values)
    return text.encode("utf-8", "backslashreplace")


@cache
def environment() -> Environment:
    """Return the templates with what all pages share: style, script, policy and menu."""
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_make_harmless,
        auto_reload=False,
        trim_blocks=True,
    )
    templates.filters |= {"text": show_text, "words": show_words, "style": style_of, "kind": lambda block: type(block).__name__}
    templates.globals |= _list_common_values()
    return templates


def show_text(content: Content) -> str:
    """Return the text of a cell without control characters; the template escapes it."""
    return clean(text_of(content))


def _make_harmless(value: object) -> object:
    """Return what a template writes; a text without its control characters. Markup was made from such text."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def trust(svg: bytes) -> Markup:
    """Return a chart of this package as Markup: its texts are escaped already."""
    return Markup(svg.decode())  # noqa: S704


def show_words(content: Content) -> Markup:
    """Return a sentence as HTML, with its parts between backticks as code, in its style if it has one."""
    words, style = _mark_code(show_text(content)), style_of(content)
    return Markup('<span class="{}">{}</span>').format(style, words) if style else words


def _mark_code(text: str) -> Markup:
    parts = text.split("`")
    if len(parts) % 2 == 0 or len(parts) == 1:  # a backtick has no partner, or there is none
        return escape(text)
    pieces = [Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)]
    return Markup("").join(pieces)


def _list_common_values() -> Mapping[str, Any]:
    style, script = (_read(name) for name in ("style.css", "script.js"))
    return {
        "style": Markup(style),  # noqa: S704  # a file of this package, and the policy names its digest
        "script": Markup(script),  # noqa: S704
        "policy": make_policy(style, script),
        "menu": MENU,
        "version": __version__,
        "made": now_utc()[:10],
    }


def _read(name: str) -> str:
    return TEMPLATES.joinpath(name).read_text(encoding="utf-8")
