"""Your part of 3.3: from raw times to the latency and the bandwidth of a link, and to the size from which it is fully used.

You will learn    which times of a sweep you can trust, and what "the line fits best" has to mean for sizes from 1 KB to 1 GB
You will produce  `read_curve`, which finds both numbers although single calls, and all calls of some size, were disturbed
Try it            gpucourse try 3.3; then gpucourse run 3.3 applies it to the times of the run
Your part         the body of `read_curve`; keep its name and its parameter
Reading           modules/03-parallel-computing/lesson.md, "Which bandwidth?"
"""

from __future__ import annotations


def read_curve(samples: list[tuple[int, float]]) -> tuple[float, float, int | None]:
    """Return the latency (seconds), the bandwidth (bytes per second), and the size in bytes at which the plateau begins.

    Each sample is one call of a collective: the bytes of its tensor, and the seconds of its slowest rank. There are at least 7
    sizes with at least 5 calls each, in any order. Undisturbed calls take latency + bytes / bandwidth, and vary by a few
    percent. Small tensors all take about the same time: the latency. But something else used the machine at times: single calls
    took up to 20 times as long, and for up to a fifth of the sizes all calls took two or three times as long.

    The latency has to be right to 10 %, the bandwidth to 5 %. The plateau begins at the smallest of the sizes for which an
    undisturbed call gets at least 90 % of the bandwidth. If no size is large enough, return None for it.
    """
    raise NotImplementedError("read_curve: which number stands for all calls of one size?")
