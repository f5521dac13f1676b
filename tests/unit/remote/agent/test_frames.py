"""The pieces that a node sends while a run is followed."""

from __future__ import annotations

from gpucourse.remote.agent.frames import HEADER, LOG, frame


def test_frame_is_a_header_and_the_payload() -> None:
    whole = frame(LOG, 3, 1 << 40, b"text")
    assert HEADER.unpack(whole[: HEADER.size]) == (b"L", 3, 1 << 40, 4)
    assert whole[HEADER.size :] == b"text"
