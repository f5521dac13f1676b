from __future__ import annotations

import pytest

from gpucourse.ui.glyphs import TO_ASCII, UNICODE, lacks_glyphs


@pytest.mark.parametrize(
    ("encoding", "lacks"), [("utf-8", False), ("ascii", True), ("latin-1", True), ("no-such-encoding", True)]
)
def test_lacks_glyphs_of_an_encoding(encoding: str, *, lacks: bool) -> None:
    assert lacks_glyphs(encoding) is lacks


def test_to_ascii_has_every_glyph() -> None:
    assert "".join(UNICODE).translate(TO_ASCII).isascii()


def test_mark_of_a_verdict_that_is_neither_good_nor_bad_is_a_dash() -> None:
    assert [UNICODE.mark(verdict) for verdict in ("passed", "failed", "error", "not_measured")] == ["✓", "✗", "!", "–"]
