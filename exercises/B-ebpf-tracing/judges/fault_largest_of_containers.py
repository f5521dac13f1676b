"""Judge a repaired copy: a node must have the GPUs of all containers of a pod together."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("two containers with one GPU each are counted as {given}: they run at the same time, so the pod needs {right}")
}


def judge(part: Part) -> None:
    """Count the GPUs of pods whose containers ask for different numbers."""
    count = part.function("count_gpus")
    for gpus in ((1, 1), (1, 0), (2, 3, 1)):
        boxes = [
            {"name": f"box{number}", "resources": {"limits": {"nvidia.com/gpu": each}}} for number, each in enumerate(gpus)
        ]
        given = part.call(count, {"spec": {"containers": boxes}})
        if given != sum(gpus):
            raise part.wrong("still", given=given, right=sum(gpus))
    part.note("the scheduler adds up the GPUs of all containers")
