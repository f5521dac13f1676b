"""Judge a repaired copy: the time of the slowest rank must count."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("for the times 1, 2, 3 and 5, 4, 3 of three ranks the result is {given}")}


def judge(part: Part) -> None:
    """Check that the largest time of the three ranks is used for each element."""

    def body(rank: int, size: int) -> list[float]:
        import torch
        import torch.distributed as dist

        names = {"torch": torch, "dist": dist, "device": torch.device("cpu"), "world": size, "rank": rank}
        return part.call(part.function_alone("slowest", **names), [1.0 + rank, 5.0 - rank])

    answer = part.on_ranks(3, body)
    if answer[0] != [3.0, 5.0]:
        raise part.wrong("still", given=answer[0])
    part.note("the slowest rank counts, element by element")
