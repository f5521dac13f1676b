"""The text that module 0 trains on: its grammar, and the floor of its loss."""

from __future__ import annotations

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "00-local-foundations"
SCRIPTS = find_course({}).exercises / FOLDER


def test_stories_are_what_their_grammar_writes_and_their_sums_are_right() -> None:
    stories = beside_the_script(FOLDER, "stories")
    text, floor = stories.write()
    assert (SCRIPTS / "stories.txt").read_text(encoding="utf-8") == text
    for line in text.splitlines():
        words_of = line.split()
        has, gives, keeps = (stories.NUMBERS.index(words_of[place].rstrip(".")) for place in (2, 6, -1))
        assert has - gives == keeps
    assert floor == pytest.approx(0.1034, abs=1e-4), "the lesson says so"
    assert (len(text), len(set(text))) == (39295, 30)
