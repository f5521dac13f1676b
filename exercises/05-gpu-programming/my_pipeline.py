"""Your part of 5.4: copies and kernels that run at the same time, and still in the right order.

You will learn    what a stream orders, what an event adds, and what must not begin before a buffer is free
You will produce  a pipeline in which all three engines of a GPU work at the same time, on different chunks
Try it            gpucourse try 5.4
Your part         the body of `run`; keep its name and its parameters
Reading           modules/05-gpu-programming/lesson-6-overlap.md
"""

from __future__ import annotations

from typing import Any


def run(device: Any, chunks: int) -> None:
    """Queue the work on `chunks` chunks: each is copied in, computed, and copied out.

    device.stream()                          returns a new stream
    device.copy_in(stream, chunk, buffer)    copies the host's chunk into a buffer of the device
    device.compute(stream, buffer)           runs the kernel on the content of the buffer, in place
    device.copy_out(stream, buffer, chunk)   copies the buffer to the host's output for that chunk
    device.record(stream)                    returns an event: everything that is in the stream now
    device.wait(stream, event)               makes all that is queued in the stream from now on wait for the event
    device.buffers                           is the number of buffers, which are numbered from 0

    Each call only queues something, and returns immediately. This version is right but has no overlap: everything is in one
    stream, and two of the three engines always wait. Overlap all three, for any number of chunks and of buffers.
    """
    stream = device.stream()
    for chunk in range(chunks):
        device.copy_in(stream, chunk, 0)
        device.compute(stream, 0)
        device.copy_out(stream, 0, chunk)
