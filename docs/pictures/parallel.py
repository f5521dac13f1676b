"""The pictures of module 3: the ring, the buckets, the pipeline, the scaling."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from docs.pictures.canvas import Canvas

COLOURS = "abce"


def draw_ring(ranks: int = 4) -> Canvas:
    """Carry out a ring AllReduce, and draw how many ranks each chunk is summed over after each step."""
    picture = Canvas(
        "Ring AllReduce, step by step",
        f"A grid: {ranks} ranks one below the other, {2 * ranks - 1} moments from left to right. In the first {ranks - 1} "
        "steps each rank sends one chunk to the next rank, which adds it; after these steps every rank holds one chunk that is "
        f"summed over all ranks. In the other {ranks - 1} steps these chunks are passed on until every rank holds all sums. "
        f"Each rank has sent {2 * (ranks - 1)} chunks, each a quarter of the tensor: in total 2(n-1)/n of the tensor.",
        300,
    )
    held = [[{rank} for _ in range(ranks)] for rank in range(ranks)]  # held[rank][chunk]: the ranks whose numbers are in it
    moments = [[[len(chunk) for chunk in row] for row in held]]
    for step in range(2 * (ranks - 1)):
        adds = step < ranks - 1
        sent = [(rank - step) % ranks if adds else (rank + 1 - (step - ranks + 1)) % ranks for rank in range(ranks)]
        payloads = [set(held[rank][sent[rank]]) for rank in range(ranks)]
        for rank in range(ranks):
            after = (rank + 1) % ranks
            chunk = sent[rank]
            held[after][chunk] = held[after][chunk] | payloads[rank] if adds else payloads[rank]
        moments.append([[len(chunk) for chunk in row] for row in held])
    if any(count != ranks for row in moments[-1] for count in row):
        raise ValueError("the ring does not come to the sum")
    left, wide, cell = 62, 92, 18
    for moment, rows in enumerate(moments):
        x = left + moment * 100
        words = "start" if moment == 0 else f"step {moment}"
        picture.note(x + wide / 2 - 6, 28, words, anchor="middle")
        for rank, row in enumerate(rows):
            y = 44 + rank * 50
            for chunk, count in enumerate(row):
                picture.box(x + chunk * (cell + 2), y, cell, 34, COLOURS[chunk] if count == ranks else "empty", str(count))
    for rank in range(ranks):
        picture.label(8, 66 + rank * 50, f"rank {rank}")
    picture.line(left + 100, 252, left + 100 * ranks - 16, 252, arrow=True)
    picture.line(left + 100 * ranks, 252, left + 100 * (2 * ranks - 1) - 16, 252, arrow=True)
    picture.note(left + 100, 270, "reduce-scatter: the next rank adds")
    picture.note(left + 100 * ranks, 270, "all-gather: sums are passed on")
    picture.label(8, 290, "The number says over how many ranks this chunk is summed. Coloured: over all ranks.")
    return picture


def draw_buckets() -> Canvas:
    """Draw when gradients were computed and buckets sent, in a real step of DDP."""
    trace = json.loads((Path(__file__).parent / "ddp-trace.json").read_text(encoding="utf-8"))
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


def order_of(stage: int, stages: int, micro_batches: int, way: str) -> list[tuple[str, int]]:
    """Return the work of a stage, in order: GPipe (all forward, then all backward) or 1F1B."""
    if way == "GPipe":
        return [("F", m) for m in range(micro_batches)] + [("B", m) for m in range(micro_batches)]
    warm = min(stages - stage - 1, micro_batches)
    order = [("F", m) for m in range(warm)]
    for m in range(micro_batches - warm):
        order += [("F", warm + m), ("B", m)]
    return order + [("B", m) for m in range(micro_batches - warm, micro_batches)]


def replay(stages: int, micro_batches: int, way: str) -> list[list[tuple[float, str, int]]]:
    """Return the start time of each piece, if a backward takes twice as long as a forward and sending takes no time."""
    orders = [order_of(stage, stages, micro_batches, way) for stage in range(stages)]
    done: dict[tuple[int, str, int], float] = {}
    begun: list[list[tuple[float, str, int]]] = [[] for _ in range(stages)]
    free = [0.0] * stages
    while any(orders):
        for stage, order in enumerate(orders):
            while order:
                kind, number = order[0]
                needed = (stage + (-1 if kind == "F" else 1), kind, number)
                if 0 <= needed[0] < stages and needed not in done:
                    break
                begin = max(free[stage], done.get(needed, 0.0))
                free[stage] = done[stage, kind, number] = begin + (1 if kind == "F" else 2)
                begun[stage].append((begin, kind, number))
                order.pop(0)
    return begun


def draw_pipeline(stages: int = 4, micro_batches: int = 6) -> Canvas:
    """Draw the time of each stage under GPipe and under 1F1B."""
    picture = Canvas(
        "The bubble of a pipeline, with two schedules",
        f"Two charts of {stages} stages over time, with {micro_batches} micro-batches. Under GPipe all forwards come first; "
        "under 1F1B each stage runs a backward pass as soon as it can. Both take equally long and have the same bubble, "
        f"(p-1)/(m+p-1) = {100 * (stages - 1) / (micro_batches + stages - 1):.0f} %. But under 1F1B a stage holds at most one "
        "micro-batch for each stage from itself to the last; under GPipe it holds all micro-batches.",
        346,
    )
    for chart, way in enumerate(("GPipe", "1F1B")):
        top = 36 + chart * 152
        begun = replay(stages, micro_batches, way)
        end = max(begin + (1 if kind == "F" else 2) for row in begun for begin, kind, _ in row)
        scale = (760 - 82 - 10) / end
        picture.heading(8, top - 10, way)
        for stage, row in enumerate(begun):
            y = top + stage * 29
            picture.label(8, y + 17, f"stage {stage}")
            picture.box(82, y, end * scale, 25, "empty")
            for begin, kind, number in row:
                wide = (1 if kind == "F" else 2) * scale - 1
                picture.box(82 + begin * scale, y, wide, 25, "a" if kind == "F" else "c", f"{number + 1}")
    picture.legend(326, (82, "a", "forward"), (170, "c", "backward, twice as long"), (350, "empty", "idle: the bubble"))
    return picture


def draw_scaling(step_ms: float = 100, gradients_ms: float = 12) -> Canvas:
    """Draw the components of a step of one, two and four workers that share its batch, by formula from assumed times."""
    bars = []
    for workers, slower_ms in ((1, 0.0), (2, 2.0), (4, 4.0)):
        ideal_ms, sent_ms = step_ms / workers, 2 * (workers - 1) / workers * gradients_ms
        bars.append((workers, ideal_ms, slower_ms, sent_ms, step_ms / (ideal_ms + slower_ms + sent_ms)))
    workers, ideal_ms, _, sent_ms, speedup = bars[-1]
    picture = Canvas(
        "A step taken apart",
        "Three bars: the step of one worker, of two workers and of four workers that share one batch. Each consists of an "
        "ideal part, which halves each time, a small loss due to slower computing, and communication, which grows. With "
        f"{workers} workers, {ideal_ms:.0f} ms are ideal and {sent_ms:.0f} ms are communication: a speed-up of {speedup:.2f}, "
        f"an efficiency of {100 * speedup / workers:.0f} %.",
        186,
    )
    left, scale = 92, 4.7
    for row, (workers, ideal_ms, slower_ms, sent_ms, speedup) in enumerate(bars):
        x, y = float(left), 20 + row * 40
        picture.label(8, y + 18, f"{workers} worker{'s' if workers > 1 else ''}")
        for part, kind in ((ideal_ms, "a"), (slower_ms, "b"), (sent_ms, "d")):
            if part:
                picture.box(x, y, part * scale - 1, 28, kind, f"{part:.0f} ms" if part > 10 else "")
                x += part * scale
        picture.label(x + 8, y + 18, f"S = {speedup:.2f}, E = {100 * speedup / workers:.0f} %")
    picture.legend(146, (left, "a", "ideal"), (left + 90, "b", "slower computing"), (left + 240, "d", "communication"))
    picture.note(
        8, 180, f"Strong scaling by formula: a step of {step_ms:.0f} ms, 2(n-1)/n x {gradients_ms:.0f} ms to send; assumed."
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "scaling": draw_scaling,
    "ring": draw_ring,
    "buckets": draw_buckets,
    "pipeline": draw_pipeline,
}
