"""The templates of the page. They escape every text; a strict content security policy protects the reader if an escape was
forgotten."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from gpucourse import __version__
from gpucourse.report import html
from gpucourse.ui.tables import Cell, Content, Style, has_content, style_of, text_of
from gpucourse.ui.text import clean
from gpucourse.units import format_points, format_seconds, format_share, now_utc

TEMPLATES = Path(__file__).with_name("templates")
MENU = (
    ("Progress", "index.html"),
    ("Book", "book.html"),
    ("Runs", "runs.html"),
    ("Sweeps", "sweeps.html"),
    ("Costs", "costs.html"),
    ("Report", "report.html"),
)


File = tuple[str, bytes]
"""A file of the page: its path below the page's folder, and its contents."""


def render(template: str, place: str, *, title: str, current: str = "", **values: Any) -> File:
    """Return a page made from its template, in UTF-8, with the path `place`. `current` is its menu entry."""
    root = "../" * place.count("/")
    text = environment().get_template(template).render(root=root, place=place, title=title, current=current or place, **values)
    return place, text.encode("utf-8", "backslashreplace")


@cache
def environment() -> Environment:
    """Return the templates with the parts that all pages share: style, script, policy and menu."""
    templates = html.make_environment(TEMPLATES, html.TEMPLATES, finalize=_make_harmless)
    templates.filters |= {
        "words": show_words,
        "seconds": show_seconds,
        "points": format_points,
        "share": format_share,
        "anchor": make_anchor,
        "kind": lambda block: type(block).__name__,
    }
    templates.tests["shown"] = has_content
    templates.globals |= _list_common_values()
    return templates


def _make_harmless(value: object) -> object:
    """Remove control characters from a text or a cell before a template writes it. Markup is returned unchanged: its text
    has already been cleaned."""
    if isinstance(value, Markup) or not isinstance(value, (str, Cell)):
        return value
    return clean(text_of(value))


def trust(svg: bytes) -> Markup:
    """Return a chart that this package made as Markup. The texts in the chart are already escaped."""
    return Markup(svg.decode())  # noqa: S704


def make_anchor(title: str) -> str:
    """Return the anchor of a heading, to which links point."""
    return f"at-{re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-')}"


def format_moment(moment: str) -> str:
    """Return a time in UTC to the minute: `2026-03-01 10:00`."""
    return moment[:16].replace("T", " ")


def show_seconds(seconds: float | None) -> str:
    """Return how long something took, or an empty string if that is not known."""
    return "" if seconds is None else format_seconds(seconds)


def show_words(content: Content, default: Style = "") -> Markup:
    """Return a sentence as HTML, with the parts between backticks as code. A sentence without a style has the style
    `default`."""
    words, style = html.mark_code(clean(text_of(content))), style_of(content, default)
    return Markup('<span class="{}">{}</span>').format(style, words) if style else words


def _list_common_values() -> Mapping[str, Any]:
    style, script = (_read(name) for name in ("style.css", "script.js"))
    return {
        "style": Markup(style),  # noqa: S704  # a file of this package, and the policy names its digest
        "script": Markup(script),  # noqa: S704
        "policy": html.make_policy(style, script),
        "menu": MENU,
        "version": __version__,
        "made": now_utc()[:10],
    }


def _read(name: str) -> str:
    return TEMPLATES.joinpath(name).read_text(encoding="utf-8")
