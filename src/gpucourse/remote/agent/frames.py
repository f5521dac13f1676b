"""The frames that `follow` sends: a kind, the stream of a log, the offset in the log, and the bytes."""

from __future__ import annotations

import struct

LOG, RANK, END, BEAT, NAMED = b"L", b"R", b"E", b"B", b"N"
"""A piece of a log; how a rank ended; how the run ended on this node; a sign of life; the node and rank of a log's stream."""

HEADER = struct.Struct(">cIQI")
"""Kind, stream, offset of the first byte in the node's log, length of the payload."""


def frame(kind: bytes, stream: int = 0, offset: int = 0, payload: bytes = b"") -> bytes:
    """Return one frame, ready to send."""
    return HEADER.pack(kind, stream, offset, len(payload)) + payload
