"""Judge a repaired copy: a transform of real numbers must count half the operations of a complex one."""

from __future__ import annotations

import math

from gpucourse.judge import Part, Way

WAYS = {
    "still": Way("1,024 real numbers are still counted with {given:,.0f} operations: that is what 1,024 complex ones need"),
    "other": Way("1,024 real numbers are counted with {given:,.0f} operations, but 2.5 N log2 N is {right:,.0f}"),
}


def judge(part: Part) -> None:
    """Judge several powers of two, and one other length."""
    count = part.function_alone("real_transform_flops", math=math)
    for length in (1024, 1125, 2):
        reference = 2.5 * length * math.log2(length)
        answer = part.call(count, length)
        if not math.isclose(answer, reference):
            at_1024 = part.call(count, 1024)
            raise part.wrong("still" if math.isclose(answer, 2 * reference) else "other", given=at_1024, right=25_600)
    part.note("2.5 N log2 N operations, half of a complex transform's")
