from __future__ import annotations

import pytest

from gpucourse.figures.fonts import font_files, fonts_for


def test_fonts_for_are_those_that_have_the_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = font_files()["regular"].parent
    lacking = "\u1d84"  # a phonetic sign, which STIX has and DejaVu has not
    monkeypatch.setattr("matplotlib.font_manager.findSystemFonts", lambda: [str(folder / "STIXGeneral.ttf"), "/etc/hosts"])
    assert fonts_for("") == []
    assert fonts_for("中") == []
    assert fonts_for(f"{lacking}中") == [folder / "STIXGeneral.ttf"]
