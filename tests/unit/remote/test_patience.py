"""The time limit of an answer."""

from __future__ import annotations

import pytest

from gpucourse.errors import UnreachableError
from gpucourse.remote.patience import MAX_EXTRA_S, PACE, extra_s, limit_time


def test_extra_s_grows_with_the_bytes_up_to_a_limit() -> None:
    assert extra_s(3 * PACE) == 3.0
    assert extra_s(1 << 60) == MAX_EXTRA_S


def test_limit_time_gives_up_an_answer_that_is_slower_than_the_pace() -> None:
    now = 0.0
    pieces = limit_time("its answer", [bytes(5 * PACE), b"", b""], 10.0, clock=lambda: now)
    assert len(next(pieces)) == 5 * PACE
    now = 14.9
    assert next(pieces) == b""
    now = 15.0
    with pytest.raises(UnreachableError, match=f"its answer took longer than 15 s: {5 * PACE} bytes arrived meanwhile"):
        next(pieces)


def test_limit_time_ends_with_the_time_of_all_nodes() -> None:
    now = 0.0
    pieces = limit_time("its answer", [b"1", b"2"], 10.0, until=5.0, clock=lambda: now)
    assert next(pieces) == b"1"
    now = 5.0
    with pytest.raises(UnreachableError, match="the time limit for all nodes together"):
        next(pieces)
