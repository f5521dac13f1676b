"""The pictures of module 5's lesson on PyTorch: an idle GPU, the range of number formats, repairs one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docs.pictures.canvas import Canvas

LAUNCH, KERNEL, READ = (
    1.0,
    1.6,
    0.8,
)  # the time of a call on the processor, of a kernel on the GPU, and of a value's transfer back
STEPS, KERNELS = 3, 4


@dataclass(frozen=True)
class Span:
    """The work of one side from `begin` to `end`, in the step of that number (from 0)."""

    step: int
    begin: float
    end: float


def queue_steps(*, reads: bool) -> tuple[list[Span], list[Span], list[Span]]:
    """Return launches of the processor, kernels of the GPU, and waits of the processor, for some steps.

    A kernel begins when it has been launched and the previous one has ended. With `reads`, the processor waits at the end of
    each step for all kernels and for one value of their result.
    """
    launches, kernels, waits = [], [], []
    processor = gpu = 0.0
    for step in range(STEPS):
        for _ in range(KERNELS):
            launches.append(Span(step, processor, processor + LAUNCH))
            processor += LAUNCH
            begin = max(processor, gpu)
            gpu = begin + KERNEL
            kernels.append(Span(step, begin, gpu))
        if reads:
            waits.append(Span(step, processor, gpu + READ))
            processor = gpu + READ
    return launches, kernels, waits


def draw_dry_queue() -> Canvas:
    """Draw three steps in which the loss is read each time, and three in which it is not."""
    ends = [max(span.end for span in queue_steps(reads=reads)[1]) for reads in (True, False)]
    idle = [100 * (1 - STEPS * KERNELS * KERNEL / (end - LAUNCH)) for end in ends]
    picture = Canvas(
        "What reading the loss costs",
        "Two timelines of three steps with four kernels each. Above, the processor reads the loss at the end of each step, so "
        "it waits until the last kernel is done. Then the GPU is idle until the next step's first launch arrives, "
        f"{idle[0]:.0f} % of the time. Below, the processor reads nothing and runs ahead, and the GPU computes without a gap.",
        264,
    )
    scale = 612 / max(ends)
    for row, reads in enumerate((True, False)):
        top = 34 + row * 116
        launches, kernels, waits = queue_steps(reads=reads)
        words = "loss.item() in each step" if reads else "loss.detach() kept, read at the end"
        picture.heading(8, top - 12, words)
        picture.label(8, top + 20, "processor")
        picture.label(8, top + 58, "GPU")
        for span in launches:
            picture.box(90 + span.begin * scale, top + 4, (span.end - span.begin) * scale - 2, 24, "ae"[span.step % 2])
        for span in waits:
            picture.box(90 + span.begin * scale, top + 4, (span.end - span.begin) * scale - 2, 24, "empty", "waits")
        for span in kernels:
            picture.box(90 + span.begin * scale, top + 42, (span.end - span.begin) * scale - 2, 24, "ae"[span.step % 2])
        end = 90 + ends[row] * scale
        picture.line(end, top, end, top + 74, "curve sd")
        picture.note(end - 6, top + 84, f"done; the GPU was idle {idle[row]:.0f} % of the time", anchor="end")
    picture.note(8, 254, "Each box is a launch or a kernel; the colour changes with the step. Simulated, not measured.")
    return picture


FORMATS = (  # name, bits of the exponent, bits of the fraction
    ("float32", 8, 23, "a"),
    ("bfloat16", 8, 7, "c"),
    ("float16", 5, 10, "b"),
)


def find_limits(exponent: int, fraction: int) -> tuple[int, int]:
    """Return the powers of two of the smallest number above 0 and of the largest that a format can hold (IEEE 754)."""
    bias = 2 ** (exponent - 1) - 1
    return 1 - bias - fraction, bias


def draw_formats() -> Canvas:
    """Draw the range of three formats on one axis, and what scaling does to small gradients."""
    picture = Canvas(
        "What three formats can hold",
        "Three bars on an axis of powers of two. float32 and bfloat16 reach from below 2 to the power of -126 up to 2 to the "
        "power of 127; float16 from 2 to the power of -24 to 2 to the power of 15. Gradients of about 2 to the power of -30 "
        "become 0 in float16. Multiplied by 65,536, which is 2 to the power of 16, they are within the range of float16.",
        238,
    )
    left, right, low, high = 92, 740, -150, 128

    def place(power: float) -> float:
        return left + (power - low) / (high - low) * (right - left)

    for power in (-149, -100, -50, 0, 50, 100, 127):
        picture.line(place(power), 20, place(power), 142, "grid")
        picture.note(place(power), 158, f"2^{power}", anchor="middle")
    for row, (name, exponent, fraction, kind) in enumerate(FORMATS):
        smallest, largest = find_limits(exponent, fraction)
        y = 24 + row * 40
        words = f"1 + {exponent} + {fraction} bits"
        picture.label(8, y + 19, name)
        picture.box(place(smallest), y, place(largest) - place(smallest), 28, kind, words if exponent == 8 else "")
        if exponent != 8:
            picture.label(place(largest) + 8, y + 19, words)
    smallest = find_limits(5, 10)[0]
    picture.box(place(-34), 176, place(-27) - place(-34), 20, "d")
    picture.label(place(-34) - 6, 190, "small gradients: 0 in float16", anchor="end")
    picture.line(place(-27), 186, place(-18) - 4, 186, arrow=True)
    picture.box(place(-18), 176, place(-11) - place(-18), 20, "c")
    picture.label(place(-11) + 6, 190, "the same, with the loss times 2^16")
    picture.line(place(smallest), 104, place(smallest), 204, "curve sd")
    words = f"Bits of sign, exponent and fraction. The red line is 2^{smallest}, the smallest number above 0 in float16."
    picture.note(8, 226, words)
    return picture


PARTS = (("a", 5.0, "a"), ("b", 2.0, "e"), ("c", 1.0, "b"), ("d", 1.0, "d"))  # name, time and colour of four faults
REST = 1.0  # the time of the work itself


def list_repairs() -> list[tuple[str, list[str], float]]:
    """Return the rows of the picture: the repaired faults, the remaining faults, and the time."""
    times = {name: time for name, time, _ in PARTS}
    rows = [("nothing repaired", list(times)), ("only a repaired", list("bcd")), ("only c repaired", list("abd"))]
    rows += [("only c left", ["c"]), ("all repaired", [])]
    return [(words, left, REST + sum(times[name] for name in left)) for words, left in rows]


def draw_repairs() -> Canvas:
    """Draw the speed-up from repairing one of several faults, and the slowdown from the last fault that is left."""
    rows = list_repairs()
    whole, fast, alone, left = rows[0][2], rows[-1][2], rows[2][2], rows[3][2]
    picture = Canvas(
        "Repairing only one fault, and leaving only one",
        f"Bars of time. With four faults the work takes {whole:.0f} units, of which fault c takes {PARTS[2][1]:.0f}. If only c "
        f"is repaired, the work takes {alone:.0f} units and is {whole / alone:.1f} times as fast. If all faults but c are "
        f"repaired, it takes {left:.0f} units. Without c it would take {fast:.0f}, so now c makes the work {left / fast:.0f} "
        "times as slow.",
        214,
    )
    scale = 480 / whole
    for row, (words, names, time) in enumerate(rows):
        y, x = 14 + row * 36, 132.0
        picture.label(8, y + 18, words)
        for name, length, kind in ((n, t, k) for n, t, k in PARTS if n in names):
            picture.box(x, y, length * scale - 2, 26, kind, name)
            x += length * scale
        picture.box(x, y, REST * scale - 2, 26, "c", "work")
        picture.note(x + REST * scale + 8, y + 18, f"{time:.0f}: {whole / time:.1f} times as fast")
    picture.note(8, 204, "Invented times, 10 in all: four faults and the work itself.")
    return picture


def draw_trace() -> Canvas:
    """Draw a processor's thread and two streams of a GPU: launches, kernels, an exposed all-reduce, a gap and its cause."""
    picture = Canvas(
        "What a trace contains",
        "Four tracks on one time axis. The main thread launches three kernels in the range forward, waits in "
        "cudaStreamSynchronize, writes a log, and launches the next kernel. The compute stream runs the kernels later "
        "than their launches, and is idle from the end of the third kernel until the next launch. An all-reduce on the "
        "communication stream begins during the third kernel: its first part is hidden, its second part is exposed. After"
        " its end the GPU is idle, which is charged to the wait before the next launch.",
        214,
    )
    left, unit = 124, 20.0

    def bar(row: int, begin: float, end: float, kind: str, words: str = "") -> None:
        picture.box(left + begin * unit, 14 + 36 * row, (end - begin) * unit - 2, 26, kind, words)

    for row, words in enumerate(("ranges", "main thread", "compute", "communication")):
        picture.label(8, 31 + 36 * row, words)
    bar(0, 0, 4, "empty", "forward")
    bar(0, 27, 30, "empty", "next")
    for begin in (0, 1.3, 2.6, 27):
        bar(1, begin, begin + 1, "a")
    bar(1, 4, 13.4, "d", "cudaStreamSynchronize")
    bar(1, 13.4, 27, "b", "writes a log")
    for begin, end in ((1, 5), (5, 9), (9, 13), (28, 30)):
        bar(2, begin, end, "c", "kernel" if end - begin > 3 else "")
    bar(3, 10, 13, "e", "hidden")
    bar(3, 13, 19, "e", "all-reduce: exposed")
    bar(2, 19, 28, "empty", "gap")
    for launch, kernel in ((0.5, 1.2), (1.8, 5.2), (3.1, 9.2), (27.5, 28.2)):
        picture.line(left + launch * unit, 76, left + kernel * unit, 86, arrow=True)
    picture.note(
        8,
        180,
        "Arrows: the correlation of a launch and its kernel. The second and third kernel run after their range has ended.",
    )
    picture.note(8, 200, "The gap ends with the last launch. What did its thread do before? It waited, then wrote.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {
    "trace": draw_trace,
    "dry-queue": draw_dry_queue,
    "formats": draw_formats,
    "repairs": draw_repairs,
}
