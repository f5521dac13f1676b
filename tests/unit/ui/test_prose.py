from __future__ import annotations

from gpucourse.ui.prose import draw


def test_draw_has_headings_on_the_left_and_pictures_as_words() -> None:
    text = "# Ranks\n\nOne **process** each.\n\n![a ring](ring.svg)\n"
    assert draw(text, width=40, colour=False) == ["Ranks", "", "One process each.", "", "Picture ring.svg: a ring"]
    assert "36mRanks" in draw(text, width=40, colour=True)[0]
