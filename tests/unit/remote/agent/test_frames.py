"""The connection to a follower: frames, and a sign of life while there is nothing to send. Only naps move the clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from gpucourse.remote.agent import frames
from gpucourse.remote.agent.frames import BEAT_S, Line


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the naps so far, in seconds."""
    calls: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + sum(calls))
    monkeypatch.setattr(time, "sleep", calls.append)
    return calls


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(writer)


def test_rest_sends_a_beat_only_after_a_silence(naps: list[float], ends: tuple[int, int]) -> None:
    line = Line(ends[1])
    line.send(frames.LOG, 1, 0, b"new")
    line.rest(has_sent=True)
    assert naps == [], "no nap after a look that found something"
    while sum(naps) < BEAT_S / 2:
        line.rest(has_sent=False)
    assert os.read(ends[0], 1000) == frames.frame(frames.LOG, 1, 0, b"new")
    while sum(naps) < 1.5 * BEAT_S:
        line.rest(has_sent=False)
    assert os.read(ends[0], 1000) == frames.frame(frames.BEAT)
    os.close(ends[0])
