"""Judge a repaired copy: a microsecond in which two streams work is one microsecond of a busy GPU."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("in a planted trace the GPU works in {right:.1f} % of the microseconds, and the planter says {given:.1f} %")
}


def judge(part: Part) -> None:
    """Plant traces, and count the microseconds in which any stream works."""
    plant = part.function("plant")
    for fault, seed in (("none", 1), ("exposed all-reduce", 2), ("many small kernels", 3)):
        trace, answers = part.call(plant, fault, seed)
        work = [event for event in trace["traceEvents"] if event.get("cat") in {"kernel", "gpu_memcpy"}]
        moments = {moment for event in work for moment in range(event["ts"], event["ts"] + event["dur"])}
        right = 100 * len(moments) / (max(moments) + 1 - min(moments))
        if abs(answers["busy_percent"] - right) > 1e-6:
            raise part.wrong("still", given=answers["busy_percent"], right=right)
    part.note("a moment is counted once, however many streams work in it")
