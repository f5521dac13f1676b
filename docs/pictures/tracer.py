"""The pictures of tracing: what is known at the two ends of a call, and how a block is followed from its birth to its end."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas


def draw_ends() -> Canvas:
    """cudaMalloc between its two probes, and the maps that carry what one knows to the other."""
    picture = Canvas(
        "The two ends of cudaMalloc",
        "Time goes from left to right through one call of cudaMalloc(&p, bytes). At the entry a uprobe sees where p lies,"
        " how many bytes are asked for, and on top of the stack who called; it does not know whether there is memory, nor"
        " where the block will lie. At the return a uretprobe sees the error code, and p is written; the arguments are "
        "gone. Maps with the thread as their key carry the arguments from the entry to the return. There, with code 0, "
        "the block goes into size and site by its address, and with another code into failed. At cudaFree the address is "
        "all there is: it deletes the block.",
        292,
    )
    picture.line(24, 70, 736, 70, arrow=True)
    for x, words, kind in ((60, "uprobe", "a"), (330, "uretprobe", "c"), (600, "uprobe", "d")):
        picture.line(x + 40, 58, x + 40, 82)
        picture.box(x, 84, 80, 26, kind, words)
    for x, words in ((24, "cudaMalloc begins"), (306, "cudaMalloc returns"), (584, "cudaFree begins")):
        picture.text(x, 46, words, kind="ink small bold")
    picture.box(104, 60, 262, 20, "empty", "in the runtime")
    rows = (
        (24, ("arg0: where p lies", "arg1: bytes", "stack: who called")),
        (306, ("retval: 0, or the error", "*p: address of the block")),
        (584, ("arg0: the address",)),
    )
    for x, lines in rows:
        for number, words in enumerate(lines):
            picture.label(x, 132 + 18 * number, words)
    picture.box(24, 196, 210, 30, "empty", "@where @wanted @caller [tid]")
    picture.line(234, 211, 304, 211, arrow=True)
    picture.box(306, 180, 212, 26, "c", "0: @size @site [address]")
    picture.box(306, 214, 212, 26, "b", "2: @failed[2]")
    picture.line(582, 193, 520, 193, arrow=True)
    picture.box(584, 180, 152, 26, "d", "delete [address]")
    picture.note(24, 276, "Each end needs what the other knows. The key is the thread: calls of threads overlap.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"ends": draw_ends}
