"""The pictures of module 5's third part: engines over time, and orders that streams permit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docs.pictures.canvas import Canvas
from docs.pictures.sources import load

KINDS = {"copy in": "a", "compute": "b", "copy out": "c"}
LEFT = 92


def queue_chunks(device: Any, chunks: int, *, buffers: int, reuse_waits: bool = True) -> None:
    """Queue a pipeline with one stream for each engine. Without `reuse_waits`, a buffer is filled again before it is free."""
    copying_in, computing, copying_out = device.stream(), device.stream(), device.stream()
    copies: list[object] = []
    for chunk in range(chunks):
        if chunk >= buffers and reuse_waits:
            device.wait(copying_in, copies[chunk - buffers])
        device.copy_in(copying_in, chunk, chunk % buffers)
        device.wait(computing, device.record(copying_in))
        device.compute(computing, chunk % buffers)
        device.wait(copying_out, device.record(computing))
        device.copy_out(copying_out, chunk % buffers, chunk)
        copies.append(device.record(copying_out))


def queue_in_one_stream(device: Any, chunks: int) -> None:
    """Queue the same work in one stream, one operation after the other."""
    stream = device.stream()
    for chunk in range(chunks):
        device.copy_in(stream, chunk, 0)
        device.compute(stream, 0)
        device.copy_out(stream, 0, chunk)


def draw_engines(chunks: int = 8) -> Canvas:
    """Draw the three engines over time: in one stream, and overlapped with two and with three buffers."""
    streams = load("05-gpu-programming", "streams")
    charts = []
    for words, buffers in (("one stream", 0), ("three streams, two buffers", 2), ("three streams, three buffers", 3)):
        device = streams.ReplayedDevice(chunks, buffers or 1)
        if buffers:
            queue_chunks(device, chunks, buffers=buffers)
        else:
            queue_in_one_stream(device, chunks)
        charts.append((words, streams.replay(device.operations)))
    serial, two, three = (f"{spans.units:g}" for _, spans in charts)
    picture = Canvas(
        "Three engines, one stream or three",
        f"Three charts of copy in, compute and copy out over time, for {chunks} chunks that take one unit on each engine. In "
        f"one stream, only one engine works at a time, and the chunks take {serial} units. With three streams and two buffers, "
        f"every third unit is lost to waiting for a free buffer, and the chunks take {two} units. With three buffers, all "
        f"engines work at the same time, and the chunks take {three} units.",
        374,
    )
    scale = (760 - LEFT - 10) / charts[0][1].units
    for chart, (words, spans) in enumerate(charts):
        top = 34 + chart * 120
        picture.heading(8, top - 10, f"{words}: {spans.units:g} units")
        for row, engine in enumerate(KINDS):
            picture.label(8, top + row * 29 + 17, engine)
            picture.box(LEFT, top + row * 29, spans.units * scale, 25, "empty")
            for operation, begin, end in spans.spans:
                if operation.engine == engine:
                    box = (LEFT + begin * scale, top + row * 29, (end - begin) * scale - 1, 25)
                    picture.box(*box, KINDS[engine], str(operation.chunk))
    return picture


def draw_hazard(chunks: int = 5, buffers: int = 3) -> Canvas:
    """Draw a pipeline whose buffers are reused without a wait: by the clock, and in another order that is permitted."""
    streams = load("05-gpu-programming", "streams")
    device = streams.ReplayedDevice(chunks, buffers)
    queue_chunks(device, chunks, buffers=buffers, reuse_waits=False)
    spans = streams.replay(device.operations)
    hazards = streams.find_hazards(device.operations)
    order = next(iter(streams.list_orders(device.operations, hazards)))
    wrong = streams.count_wrong(device.operations, hazards, chunks, buffers)
    late = {hazard.second.number for hazard in hazards if hazard.second.engine == "copy in"}
    picture = Canvas(
        "The same pipeline, without the wait for a free buffer",
        f"Two charts of {chunks} chunks in {buffers} buffers. Above, the engines over time when all pieces take equally long: "
        "by luck, chunk 3 comes into buffer 0 just when chunk 0 has left. Below, another order that the streams permit: all "
        "chunks come in before the first chunk is computed. Chunks 3 and 4 overwrite chunks 0 and 1, and "
        f"{wrong} of {chunks} results are wrong.",
        292,
    )
    picture.heading(8, 24, "by the clock: right, by luck")
    picture.heading(8, 152, "also permitted: the copies in run ahead")
    slots = {number: float(at) for at, number in enumerate(order)}
    scale = (760 - LEFT - 10) / len(order)
    for top, begins in ((34, {op.number: begin for op, begin, _ in spans.spans}), (162, slots)):
        for row, engine in enumerate(KINDS):
            picture.label(8, top + row * 29 + 17, engine)
            for operation in device.operations:
                if operation.engine == engine:
                    x = LEFT + begins[operation.number] * scale
                    kind = "d" if operation.number in late else "abc"[operation.buffer]
                    picture.box(x, top + row * 29, scale - 1, 25, kind, str(operation.chunk))
    words = ("buffer 0", "buffer 1", "buffer 2", "fills a buffer again")
    picture.legend(264, *((LEFT + place * 110, "abcd"[place], text) for place, text in enumerate(words)))
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "engines": draw_engines,
    "hazard": draw_hazard,
}
