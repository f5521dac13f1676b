"""A solution of 5.4: it uses a stream for each engine, and an event each time a chunk goes from one engine to the next."""

from __future__ import annotations

from typing import Any


def run(device: Any, chunks: int) -> None:
    """Queue the work on `chunks` chunks: each is copied in, computed, and copied out."""
    copying_in, computing, copying_out = device.stream(), device.stream(), device.stream()
    copies = []  # by chunk: the event after its copy out
    for chunk in range(chunks):
        buffer = chunk % device.buffers
        if chunk >= device.buffers:
            device.wait(copying_in, copies[chunk - device.buffers])
        device.copy_in(copying_in, chunk, buffer)
        arrival = device.record(copying_in)
        device.wait(computing, arrival)
        device.compute(computing, buffer)
        result = device.record(computing)
        device.wait(copying_out, result)
        device.copy_out(copying_out, buffer, chunk)
        copies.append(device.record(copying_out))
