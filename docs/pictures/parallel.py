"""The picture of module 3 that shows a recorded trace: the buckets of DDP."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas
from docs.pictures.sources import locate_record, read_data


def draw_buckets() -> Canvas:
    """Draw when gradients were computed and buckets sent, in a real step of DDP."""
    trace = read_data(locate_record("ddp-trace"))
    spans, end = trace["spans"], max(span["to_us"] for span in trace["spans"])
    picture = Canvas(
        "Buckets during backward: a measured step of DDP",
        f"Rows over {end / 1000:.0f} ms. Above, backward computes the gradients of eight layers, one after the other. Below "
        "is a row for each bucket of two layers: its all-reduce begins as soon as both gradients are complete, while backward "
        f"continues with the layers before them. Measured: {trace['what']}; {trace['where']}.",
        258,
    )
    left, scale = 92, (760 - 92 - 16) / end
    backward = [span for span in spans if span["what"] == "backward"]
    picture.label(8, 42, "backward")
    for number, span in enumerate(backward):
        wide = max(2.0, (span["to_us"] - span["from_us"]) * scale)
        name = f"{len(backward) - number}"
        picture.box(left + span["from_us"] * scale, 20, wide, 34, "a", name if len(name) * 6.2 < wide else "")
    for number, span in enumerate(span for span in spans if span["what"] == "all-reduce"):
        y = 66 + number * 34
        picture.label(8, y + 18, f"bucket {number + 1}")
        picture.box(left + span["from_us"] * scale, y, max(2.0, (span["to_us"] - span["from_us"]) * scale), 26, "b")
    step = 50_000 if end > 200_000 else 20_000
    for time in range(0, end, step):
        x = left + time * scale
        picture.line(x, 206, x, 212)
        picture.note(x, 226, f"{time // 1000} ms", anchor="middle")
    picture.note(8, 250, f"measured: {trace['where']}, {trace['what'].partition(', ')[2]}")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"buckets": draw_buckets}
