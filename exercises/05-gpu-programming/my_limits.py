"""Your part of 5.7: find out from a trace what limits a program. The names of its kernels do not help.

You will learn    which figures of a kernel prove a limit, and how to add up the time of kernels that overlap
You will produce  a `find_limit` that is right for traces of any program on any GPU
Try it            gpucourse try 5.7; gpucourse run 5.7 uses it on new traces, and on the kernels that it measures
Your part         the body of `find_limit`
Reading           modules/05-gpu-programming/lesson-9-limits.md, "Reading a trace"
"""

from __future__ import annotations

from collections.abc import Sequence

from planted_traces import Device, Launch


def find_limit(launches: Sequence[Launch], device: Device) -> str:
    """Return the limit that takes the most time of a trace, from the start of its first kernel to the end of its last.

    launches   the kernels, in no particular order; planted_traces.py describes the fields of a Launch
    device     its two roofs, `gflop_per_s` and `gb_per_s`

    "launches"    no kernel runs: the GPU waits for the next launch
    "arithmetic"  the kernel is near the roof of arithmetic
    "memory"      the kernel is near the roof of memory, and uses what it fetches
    "access"      the kernel is near the roof of memory, and wastes what it fetches
    "latency"     the kernel is near no roof: its warps wait
    "issue"       the kernel is near no roof, although its warps seldom wait

    Half decides everywhere: a kernel is near a roof from half of it on, it uses what it fetches from half of the bytes on, and
    its warps wait if they do so in more than half of the clocks. A kernel that is near both roofs is limited by the nearer one.
    Time in which two kernels run together counts once; they then have the same limit.
    """
    raise NotImplementedError("find_limit: which share of each roof does a kernel reach while it runs, and for how long?")
