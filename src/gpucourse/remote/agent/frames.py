"""The pieces that `follow` sends: a kind, which log, where in it, and the bytes. And how many files `pack` sends."""

from __future__ import annotations

import struct

LOG, RANK, END, BEAT, NAMED = b"L", b"R", b"E", b"B", b"N"
"""A piece of a log; how a rank ended; how the run ended on this node; a sign of life; whose log a stream is (under Slurm, where
one node tells those of many)."""

MOST_FILES = 20_000
"""The most results of one node that `pack` sends; a script that writes more has to pack them."""

LAUNCHER = 0
"""The stream of the launcher's log; rank r has r + 1."""

HEADER = struct.Struct(">cIQI")
"""Kind, stream, offset of the first byte in the node's log, length of what comes after."""


def frame(kind: bytes, stream: int = 0, offset: int = 0, payload: bytes = b"") -> bytes:
    """One piece, ready to send."""
    return HEADER.pack(kind, stream, offset, len(payload)) + payload
