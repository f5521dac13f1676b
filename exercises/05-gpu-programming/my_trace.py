"""Your part of 5.11: read a trace, and name what costs the time.

You will learn    what overlaps in a trace, which code a kernel belongs to, and which of several signs is the fault
You will produce  the busy share, exposed communication, the longest gap with its cause, time by range, and the fault
Try it            gpucourse try 5.11; gpucourse run 5.11 uses it on planted traces, and on a trace of the run itself
Your part         the bodies of the five functions; add helpers as you like
Reading           modules/05-gpu-programming/lesson-13-traces.md

`events` is the list "traceEvents" of a trace in PyTorch's format (Kineto), in no order. It has more categories than these, and
events without a category:

    "cat"                      what                    "tid"    "args"
    kernel, gpu_memcpy,        work of the GPU         stream   correlation
    gpu_memset
    cuda_runtime               a call on a thread      thread   correlation, if it launched work
    user_annotation            a range (record_        thread
                               function, NVTX)

Each has "name", "ts" (its start) and "dur", both in microseconds. A call and the work that it launched have the same
correlation. Communication has a name that begins with "nccl".
"""

from __future__ import annotations

from typing import Any

Event = dict[str, Any]


def busy_percent(events: list[Event]) -> float:
    """Return the share of the time in which the GPU does any work, from its first work to its last, in percent."""
    raise NotImplementedError("busy_percent: how long does the GPU work if two streams work at the same time?")


def exposed_us(events: list[Event]) -> float:
    """Return the microseconds in which communication runs, and no other work of the GPU."""
    raise NotImplementedError("exposed_us: which part of a communication do other streams hide?")


def longest_gap(events: list[Event]) -> tuple[float, str]:
    """Return the length of the longest time without work between two pieces of work, and the name of the call before it.

    This is the call before the launch of the work after the gap, on the thread of that launch, or "" if there is none.
    """
    raise NotImplementedError("longest_gap: what did the thread do instead of launching the next work?")


def range_us(events: list[Event]) -> dict[str, float]:
    """Return the microseconds of work of each range, by its name: of the work that was launched in it, on its thread.

    If ranges are nested, work belongs to the innermost only. Work that no range launched belongs to "".
    """
    raise NotImplementedError("range_us: the work runs later than the range that launched it. What connects the two?")


def name_fault(events: list[Event]) -> str:
    """Return what costs the most time: "sync in the loop", "pageable copy", "many small kernels", "unfused optimizer" or
    "exposed all-reduce". Return "none" if none costs a tenth of the time from the first work to the last.

    The optimizer runs in a range named "optimizer". Every trace has symptoms of several faults.
    """
    raise NotImplementedError("name_fault: how many microseconds would be saved if the fault were gone?")
