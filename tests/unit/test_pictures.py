"""The pictures of the lessons are what their script draws, and each lesson shows them with the same words."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from docs.pictures.canvas import Canvas
from docs.pictures.draw import draw_all, reference

PICTURES = draw_all()


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_is_as_it_is_drawn_and_stands_in_its_lesson(path: Path) -> None:
    picture = PICTURES[path]
    assert path.read_text(encoding="utf-8") == picture.svg(), "type: make pictures"
    ET.fromstring(picture.svg())
    lessons = "".join(lesson.read_text(encoding="utf-8") for lesson in path.parent.parent.glob("lesson*.md"))
    assert lessons.count(reference(path.stem, picture)) == 1
    assert "prefers-color-scheme:dark" in picture.svg()


def test_words_that_do_not_fit_are_refused() -> None:
    picture = Canvas("A title", "What it shows.", 100)
    with pytest.raises(ValueError, match="wider than its box"):
        picture.box(0, 0, 20, 20, "a", "far too many words")
    with pytest.raises(ValueError, match="outside"):
        picture.text(750, 20, "too far right")
