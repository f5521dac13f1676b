"""Pictures of module 6's first lesson: memory over a training step, and the data that a checkpointed block keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docs.pictures.canvas import Canvas

LAYERS, WIDTH, LENGTH, BATCH, VOCABULARY = 4, 128, 128, 16, 512  # the model of 6.1 on simulated nodes
MIB = 1 << 20
BLOCK = 4 * (12 * WIDTH**2 + 13 * WIDTH) / MIB  # weights of a block
WEIGHTS = LAYERS * BLOCK + 4 * (2 * VOCABULARY * WIDTH + LENGTH * WIDTH + 2 * WIDTH + VOCABULARY) / MIB
INPUT = 4 * BATCH * LENGTH * WIDTH / MIB  # of a block, for the whole batch
KEPT = {"input": 1, "norm": 1, "q, k, v": 3, "heads": 1, "sum": 1, "norm 2": 1, "up": 4, "gelu": 4}  # in inputs of the block
SCORES = 2 + 2 * VOCABULARY / WIDTH  # in inputs: what norm and scores keep, and the loss
DEVICE_MIB = 32


@dataclass(frozen=True)
class Moment:
    """The memory in use in one part of a step, in MiB."""

    stage: str
    gradients: float
    activations: float

    @property
    def total(self) -> float:
        """Return the total, with the weights and the two moments of AdamW. The optimizer works with a copy of the weights."""
        copy = WEIGHTS if self.stage == "optimizer" else 0.0
        return 3 * WEIGHTS + self.gradients + self.activations + copy


def follow_step(parts: int, *, checkpointed: bool) -> list[Moment]:
    """Return the moments of a step with `parts` micro-batches, block by block."""
    unit, whole = INPUT / parts, sum(KEPT.values())
    kept = 1 if checkpointed else whole
    gradients, moments = 0.0, []
    for part in range(parts):
        moments += [Moment("forward", gradients, layer * kept * unit) for layer in range(1, LAYERS + 1)]
        before = gradients if part else WEIGHTS - LAYERS * BLOCK
        moments.append(Moment("backward", gradients, (LAYERS * kept + SCORES + VOCABULARY / WIDTH) * unit))
        for layer in range(LAYERS, 0, -1):
            again = whole - kept  # of the block that is computed again
            gradients = gradients if part else before + (LAYERS - layer) * BLOCK
            moments.append(Moment("backward", gradients, (layer * kept + again + 4) * unit))
        gradients = WEIGHTS
    return [*moments, Moment("optimizer", gradients, 0.0)]


def draw_step() -> Canvas:
    """Draw the plain step, and a step with checkpoints and four micro-batches, on the same scale."""
    ways = {"plain step": follow_step(1, checkpointed=False)}
    ways["every block checkpointed, four micro-batches"] = follow_step(4, checkpointed=True)
    peaks = [max(moment.total for moment in moments) for moments in ways.values()]
    floor = 4 * WEIGHTS
    picture = Canvas(
        "Memory over a training step",
        f"Two rows of bars over the time of a step, in MiB. In a plain step, weights and moments take {3 * WEIGHTS:.1f} MiB "
        f"all the time. Activations grow from block to block in forward, up to a peak of {peaks[0]:.0f}, and shrink in "
        "backward while gradients grow. The optimizer needs a copy of the weights. With every block checkpointed and four "
        f"micro-batches, activations form four low hills, and the peak is {peaks[1]:.0f}. Two lines mark the device of "
        f"{DEVICE_MIB} MiB and the floor of {floor:.1f}.",
        364,
    )
    left, wide, high = 60, 690, 150
    scale = high / 95
    for row, (name, moments) in enumerate(ways.items()):
        base = 180 + row * 124
        picture.heading(left, base - max(high * (1 - row), 52) - 8, f"{name}: peak {peaks[row]:.0f} MiB")
        step = wide / len(moments)
        for place, moment in enumerate(moments):
            _stack(picture, left + place * step, base, step, moment, scale)
        for size, words in ((DEVICE_MIB, "device"), (floor, "floor")):
            y = base - size * scale
            picture.parts.append(
                f'<line class="line" x1="{left}" y1="{y:.1f}" x2="{left + wide}" y2="{y:.1f}" stroke-dasharray="5 3"/>'
            )
            picture.note(left - 6, y + 4, words, anchor="end")
    first = ways["plain step"]
    step = wide / len(first)
    for stage in ("forward", "backward", "optimizer"):
        places = [place for place, moment in enumerate(first) if moment.stage == stage]
        middle = left + step * (places[0] + places[-1] + 1) / 2
        picture.note(middle, 196, stage, anchor="middle")
    legend = [("a", "weights"), ("e", "moments"), ("c", "gradients"), ("b", "activations"), ("d", "the optimizer's copy")]
    x = left
    for kind, words in legend:
        picture.box(x, 338, 12, 12, kind)
        picture.label(x + 17, 349, words)
        x += 40 + 7 * len(words)
    return picture


def _stack(picture: Canvas, x: float, base: float, wide: float, moment: Moment, scale: float) -> None:
    copy = WEIGHTS if moment.stage == "optimizer" else 0.0
    sizes = [("a", WEIGHTS), ("e", 2 * WEIGHTS), ("c", moment.gradients), ("b", moment.activations), ("d", copy)]
    y = base
    for kind, size in sizes:
        if size:
            y -= size * scale
            picture.box(x, y, wide - 1.5, size * scale, kind)


def draw_checkpoint() -> Canvas:
    """Draw the tensors that a block keeps for backward, without and with checkpointing."""
    whole = sum(KEPT.values())
    picture = Canvas(
        "What a block keeps for backward",
        "Boxes for the tensors that one block keeps. Their width shows their size, in units of the block's input: "
        + ", ".join(f"{name} {size}" for name, size in KEPT.items())
        + f", {whole} in all. Below, the block is checkpointed, and only its input is kept, 1. In backward the block is "
        "computed again up to gelu, so all its tensors exist again. The product by down is left out, because backward does "
        "not need its result.",
        196,
    )
    left, unit = 16, 45.5
    picture.heading(left, 20, f"plain: {whole} inputs are kept from forward to backward, in every block")
    x = float(left)
    for name, size in KEPT.items():
        picture.box(x, 30, size * unit - 3, 34, "b", name)
        x += size * unit
    picture.heading(left, 102, "checkpointed: 1 input is kept in every block; the others are recomputed in backward")
    x = float(left)
    for name, size in KEPT.items():
        picture.box(x, 112, size * unit - 3, 34, "b" if name == "input" else "empty", name)
        x += size * unit
    picture.note(left, 168, "Filled: held over the whole step. Empty: held while this one block is in backward.")
    picture.note(left, 186, "Width: bytes, in inputs of the block (4 bytes x tokens x width). In float32, without dropout.")
    return picture


def draw_message() -> Canvas:
    """Draw the GPU of the example message: allocated memory, cached memory, the context, free memory, and the tensor that does
    not fit.
    """
    capacity, free, process, allocated, cached, asked = 14.56, 1.41, 13.13, 12.40, 412 / 1024, 3.07
    context = process - allocated - cached
    picture = Canvas(
        "What an out-of-memory message adds up to",
        f"A bar for a GPU of {capacity:g} GiB. {allocated:.2f} GiB are allocated by PyTorch, {cached:.2f} reserved but "
        f"unallocated, {context:.2f} used by the context, {free:g} free. Below the bar, a tensor of {asked:g} GiB begins where "
        f"the free memory begins, and ends {asked - free:.2f} GiB beyond the end of the GPU.",
        168,
    )
    left, unit, end = 14.0, 43.0, 0.0
    picture.heading(left, 20, f"a GPU of {capacity:g} GiB")
    names = ("allocated by PyTorch", "reserved, unallocated", "context", "free")
    for name, size, kind in zip(names, (allocated, cached, context, free), ("a", "b", "e", "empty"), strict=True):
        words = f"{name} {size:.2f}" if size * unit > 100 else f"{size:g}" if name == "free" else ""
        picture.box(left + end * unit, 30, size * unit - 2, 36, kind, words)
        end += size
    picture.box(left + process * unit, 76, asked * unit - 2, 30, "d", f"tried: {asked:g}")
    picture.line(left + end * unit, 26, left + end * unit, 112)
    picture.legend(
        124, (left, "a", names[0]), (left + 180, "b", names[1]), (left + 360, "e", names[2]), (left + 460, "empty", names[3])
    )
    picture.note(
        left,
        162,
        "Widths in proportion. To allocate the tensor, all of it must fit into the free part or into one cached piece.",
    )
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "memory-of-a-step": draw_step,
    "checkpoint": draw_checkpoint,
    "message": draw_message,
}
