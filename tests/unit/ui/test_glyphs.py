from __future__ import annotations

import pytest

from gpucourse.ui.glyphs import ASCII, UNICODE, glyphs_for


@pytest.mark.parametrize(("encoding", "expected"), [("utf-8", UNICODE), ("ascii", ASCII), ("latin-1", ASCII), (None, ASCII)])
def test_glyphs_for_fit_the_encoding(encoding: str | None, expected: object) -> None:
    assert glyphs_for(encoding) is expected
    assert glyphs_for("no-such-encoding") is ASCII


def test_mark_of_a_verdict_that_is_neither_good_nor_bad_is_a_dash() -> None:
    assert [UNICODE.mark(verdict) for verdict in ("passed", "failed", "error", "not_measured")] == ["✓", "✗", "!", "–"]
