"""Another solution of 5.4, without an event: a stream for each buffer orders all operations that use the buffer."""

from __future__ import annotations

from typing import Any


def run(device: Any, chunks: int) -> None:
    """Queue the work on `chunks` chunks: each is copied in, computed, and copied out."""
    streams = [device.stream() for _ in range(device.buffers)]
    for chunk in range(chunks):
        buffer = chunk % device.buffers
        device.copy_in(streams[buffer], chunk, buffer)
        device.compute(streams[buffer], buffer)
        device.copy_out(streams[buffer], buffer, chunk)
