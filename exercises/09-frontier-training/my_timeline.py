"""Your part of 9.6: when each gather, each computation and each reduce of FSDP begins and ends.

You will learn    what waits for what in a step of FSDP, and which messages a GPU hides behind computing
You will produce  a timeline for any order of issue, any durations and any room in memory
Try it            gpucourse try 9.6
Your part         the body of `timeline`; keep its name and its parameters
Reading           modules/09-frontier-training/lesson-7-overlap.md, "Three queues"
"""

from __future__ import annotations


def timeline(
    issues: list[tuple[str, int]], seconds: dict[str, list[float]], room: int, issue_s: float
) -> list[tuple[float, float]]:
    """Return when each issue begins and ends, in the order of `issues`.

    The processor issues one after the other, and needs `issue_s` for each: issue number i (from 0) is issued at
    (i + 1) * issue_s. It does not wait for the GPU. The GPU has three queues, each in the order of issue, one at a time:

    - ("gather", layer) takes seconds["gather"][layer]. It makes the layer whole.
    - ("forward", layer) and ("backward", layer) share a queue, and need the last gather of the layer that was issued before.
    - ("reduce", layer) needs the layer's backward.

    ("free", layer) takes no time and is in no queue: the layer leaves memory when the layer's last computation issued before it
    ends. Memory has room for `room` layers, from the beginning of their gather until their free. So a gather begins when fewer
    layers than that are in memory; layers leave in the order of their frees in `issues`.
    """
    raise NotImplementedError("timeline: what must be true before a gather may begin?")
