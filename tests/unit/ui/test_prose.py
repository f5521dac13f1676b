from __future__ import annotations

from gpucourse.ui.prose import Lesson
from gpucourse.ui.styles import draw


def test_draw_has_headings_on_the_left_and_pictures_as_words() -> None:
    text = "# Ranks\n\nOne **process** each.\n\n![a ring](ring.svg)\n"
    assert draw(Lesson(text), width=40).splitlines() == ["Ranks", "", "One process each.", "", "Picture ring.svg: a ring"]
    assert "36mRanks" in draw(Lesson(text), width=40, colour=True).splitlines()[0]
