from __future__ import annotations

import base64
import hashlib
import re

import pytest

from gpucourse.ui.page.markup import TEMPLATES, show_words
from gpucourse.ui.tables import Cell
from tests.learning import Learning
from tests.unit.ui.page.pages import Reader, pages_of


def test_environment_has_a_policy_that_allows_the_style_and_script_of_a_page_alone(learning: Learning) -> None:
    text = pages_of(learning)["index.html"]
    policy = next(str(attributes["content"]) for tag, attributes in Reader(text).tags if attributes.get("http-equiv"))
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
    assert "http" not in re.sub(r"http-equiv", "", text)  # nothing is fetched from anywhere


def read_colours(style: str) -> list[dict[str, str]]:
    """Return the colours of the light page and of the dark page."""
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})\b", block)) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)]


def find_contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, as WCAG 2 defines it."""

    def find_luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(find_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_markup_style_has_enough_contrast(dark: bool) -> None:
    colours = read_colours(TEMPLATES.joinpath("style.css").read_text())[dark]
    for name in ("ink", "soft", "link", "good", "bad", "warn"):
        assert min(find_contrast(colours[name], colours[back]) for back in ("back", "pale")) >= 4.5, name
    for name in ("mark", "c0", "c1", "c2", "c3", "c4", "c5"):
        assert find_contrast(colours[name], colours["back"]) >= 3, name


def test_show_words_marks_code_and_escapes_everything() -> None:
    assert show_words("type `gpucourse run <3.1>`") == "type <code>gpucourse run &lt;3.1&gt;</code>"
    assert show_words("a lone ` & more") == "a lone ` &amp; more"
    assert show_words(Cell("no\x1b[31m", "bad")) == '<span class="bad">no</span>'
