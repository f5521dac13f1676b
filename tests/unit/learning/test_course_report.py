from __future__ import annotations

import re
from html import unescape

from markdown_it import MarkdownIt

from tests.learning import Learning


def test_report_course_shows_the_words_of_the_learner_as_text(learning: Learning) -> None:
    hostile = "<img src=x onerror=alert(1)>![](http://evil/p.png)"
    learning.record()
    learning.types("answer", "1.1", "--set", f"why=first {hostile}\n\n<script>alert(2)</script>")
    learning.types("report", "--of", "course", "--author", f"Ada {hostile}\n# X")
    html = MarkdownIt("commonmark").render(learning.open_context().paths.course_report.read_text())
    assert not re.search(r"<(?:img|script)\b", html)
    assert unescape(html).count(hostile) == 2
    assert "on simulated nodes: its times say nothing about GPUs" in html
    result = learning.types("report", "--of", "course", "--format", "pdf", code=2)
    assert "--of course is written as Markdown" in result.err
