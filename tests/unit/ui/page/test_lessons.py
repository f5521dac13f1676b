from __future__ import annotations

from gpucourse.ui.page.lessons import Section, render_lesson


def test_render_lesson_has_different_anchors_for_headings_of_one_name() -> None:
    page = render_lesson("# Rain\n\nIt *falls*.\n\n## Why?\n\n## Why?\n\n## 雨\n", lambda _: None)
    assert page.title == "Rain"
    assert page.headings[0] == Section(id="rain", title="Rain", level=1, words="It falls.")
    assert [heading.id for heading in page.headings] == ["rain", "why", "why--2", "section"]


def test_render_lesson_has_pictures_in_the_page_and_html_as_text() -> None:
    text = "![a ring](ring.svg) ![gone](gone.png) ![far](http://x/y.exe)\n\n<script>alert(1)</script>"
    html = render_lesson(text, {"ring.svg": b"<svg/>"}.get).html
    assert '<img alt="a ring" src="data:image/svg+xml;base64,PHN2Zy8+">' in html
    assert "<em>gone</em>" in html
    assert "<em>far</em>" in html
    assert "<script>" not in html
