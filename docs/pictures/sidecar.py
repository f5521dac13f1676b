"""The picture of B.1: a pod with an engine and a tracer, and the kernel that both share."""

from __future__ import annotations

from collections.abc import Callable

from docs.pictures.canvas import Canvas


def draw_sidecar() -> Canvas:
    """Two containers that share process numbers, and what leads from the tracer to the engine's library."""
    picture = Canvas(
        "A tracer beside an engine",
        "A pod with two containers. Left the engine: process 2 is vLLM, with its files, in them libcudart, and the GPU. "
        "Right the tracer: process 9 is bpftrace, user 0, with SYS_ADMIN and SYS_PTRACE, without a GPU. A frame around "
        "both processes says that process numbers are shared. An arrow leads from the tracer by /proc/2/root to "
        "libcudart. Below stands the node's kernel with BTF and tracefs, which are mounted into the tracer, and which "
        "puts the breakpoint into libcudart.",
        292,
    )
    for left, words, own in ((24, "container engine", "image of vLLM"), (426, "container tracer", "image with bpftrace")):
        picture.box(left, 34, 310, 160, "empty")
        picture.heading(left, 24, words)
        picture.note(left + 310, 24, own, anchor="end")
    for high in (46, 88):
        picture.line(34, high, 726, high, "line")
    for aside in (34, 726):
        picture.line(aside, 46, aside, 88, "line")
    picture.box(54, 52, 180, 30, "a", "process 2: vLLM")
    picture.box(526, 52, 180, 30, "b", "process 9: bpftrace")
    picture.note(380, 72, "shared numbers", anchor="middle")
    picture.box(54, 104, 180, 30, "a", "libcudart.so")
    picture.box(54, 150, 180, 30, "c", "one GPU")
    picture.line(526, 119, 238, 119, arrow=True)
    picture.note(380, 111, "/proc/2/root/...", anchor="middle")
    picture.label(536, 123, "SYS_PTRACE: may look there")
    picture.label(536, 147, "SYS_ADMIN: may set uprobes")
    picture.label(536, 171, "user 0, no GPU")
    picture.box(24, 226, 712, 34, "e", "the node's kernel")
    picture.line(44, 226, 44, 134, "line")
    picture.line(44, 134, 52, 124, arrow=True)
    picture.note(50, 214, "breakpoint")
    picture.line(440, 226, 440, 198, arrow=True)
    picture.line(580, 226, 580, 198, arrow=True)
    picture.note(448, 214, "BTF: its types")
    picture.note(588, 214, "tracefs: its probes")
    picture.note(24, 282, "The kernel sets the breakpoint: it acts in every process that has this file mapped.")
    return picture


PICTURES: dict[str, Callable[[], Canvas]] = {"sidecar": draw_sidecar}
