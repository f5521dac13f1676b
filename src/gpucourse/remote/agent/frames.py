"""The frames that `follow` sends. Each has a kind, the stream of a log, the offset in the log, and the bytes."""

from __future__ import annotations

import struct

LOG, RANK, END, BEAT, NAMED = b"L", b"R", b"E", b"B", b"N"
"""The kinds: a piece of a log, the end of a rank, the end of the run on this node, a sign of life, the owner of a log."""

HEADER = struct.Struct(">cIQI")
"""The kind, the stream, the offset of the first byte in the node's log, and the length of the payload."""


def frame(kind: bytes, stream: int = 0, offset: int = 0, payload: bytes = b"") -> bytes:
    """Return one frame, ready to send."""
    return HEADER.pack(kind, stream, offset, len(payload)) + payload
