from __future__ import annotations

import base64
import hashlib
import re

from gpucourse.ui.page.markup import show_words
from gpucourse.ui.tables import Cell
from tests.learning import Learning
from tests.unit.ui.page.pages import Reader, pages_of


def test_policy_allows_the_style_and_script_of_a_page_and_nothing_else(learning: Learning) -> None:
    text = pages_of(learning)["index.html"]
    policy = next(str(attributes["content"]) for tag, attributes in Reader(text).tags if attributes.get("http-equiv"))
    assert "default-src 'none'" in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"{tag}-src 'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'" in policy
    assert "http" not in re.sub(r"http-equiv", "", text)  # nothing is fetched from anywhere


def test_show_words_marks_code_and_escapes_everything() -> None:
    assert show_words("type `gpucourse run <3.1>`") == "type <code>gpucourse run &lt;3.1&gt;</code>"
    assert show_words("a lone ` & more") == "a lone ` &amp; more"
    assert show_words(Cell("no\x1b[31m", "bad")) == '<span class="bad">no</span>'
