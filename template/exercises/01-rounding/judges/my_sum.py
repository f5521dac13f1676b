"""Judge my_sum.py by what it does: how often it adds, and what comes out."""

from __future__ import annotations

import struct

from gpucourse.judge import Case, Part, Way

WAYS = {
    "own-addition": Way(
        "{ones} ones were added without add, so nothing was rounded: on a GPU in half precision every sum is rounded",
        ("add(*pair)", "sum(pair)"),
    ),
    "loses-one": Way(
        "only {used} of {ones} numbers were used: a round over an odd count leaves one, which belongs to the next round",
        ("+ rest", ""),
    ),
    "in-order": Way(
        "{ones} ones give {given:g}: you add each number to the sum so far, and from 2048 on, 1 is too small to count",
        (
            "values = [add(*pair) for pair in zip(values[::2], values[1::2])] + rest",
            "values = [add(*values[:2]), *values[2:]]",
        ),
    ),
}


def judge(part: Part) -> None:
    """Judge sums of ones, and of even, odd and large counts."""
    add_in_pairs = part.function("add_in_pairs")
    for ones in (1, 2, 7, 4096):
        calls = []

        def add(left: float, right: float, calls: list[float] = calls) -> float:
            calls.append(left)
            return struct.unpack("e", struct.pack("e", left + right))[0]

        name = f"{ones} ones"
        given = part.call(add_in_pairs, [1.0] * ones, add, case=name)
        if ones > 1 and not calls:
            raise part.wrong("own-addition", name, ones=ones)
        if given != ones and len(calls) < ones - 1:
            raise part.wrong("loses-one", name, ones=ones, used=len(calls) + 1)
        if given == 2048.0:
            raise part.wrong("in-order", name, ones=ones, given=given)
        part.compare([Case(name, given, float(ones))])
    part.note("right for 1, 2, 7 and 4,096 ones")
