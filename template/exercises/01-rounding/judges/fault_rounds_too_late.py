"""Judge a repaired copy: the sum in order is rounded after every addition."""

from __future__ import annotations

import struct

from gpucourse.judge import Part, Way

WAYS = {"still": Way("4,096 ones in order give {given:g}, and in half precision no more than 2048 can come out")}


def judge(part: Part) -> None:
    """Judge the function alone: the script around it would run immediately."""

    def add(left: float, right: float) -> float:
        return struct.unpack("e", struct.pack("e", left + right))[0]

    def to_half(value: float) -> float:
        return add(value, 0.0)

    given = part.call(part.function_alone("add_in_order", add=add, to_half=to_half), [1.0] * 4096)
    if given != 2048:
        raise part.wrong("still", given=given)
    part.note("4,096 ones in order give 2048")
