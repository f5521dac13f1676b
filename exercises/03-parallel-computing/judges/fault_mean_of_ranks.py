"""Judges a repaired copy: the slowest rank counts."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("from the times 1, 2, 3 and 5, 4, 3 of three ranks it makes {given}")}


def judge(part: Part) -> None:
    """From the different times of three ranks, the largest must be taken, element by element."""

    def body(rank: int, size: int) -> list[float]:
        import torch
        import torch.distributed as dist

        names = {"torch": torch, "dist": dist, "device": torch.device("cpu"), "world": size, "rank": rank}
        return part.call(part.function_alone("slowest", **names), [1.0 + rank, 5.0 - rank])

    answer = part.on_ranks(3, body)
    if answer[0] != [3.0, 5.0]:
        raise part.wrong("still", given=answer[0])
    part.note("the slowest rank counts, element by element")
