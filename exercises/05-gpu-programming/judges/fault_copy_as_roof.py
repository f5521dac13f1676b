"""Judge a repaired copy: its roof must be the loop that moved the most bytes a second, wherever that loop is in the list."""

from __future__ import annotations

from gpucourse.judge import Part, Way

WAYS = {"still": Way("it chooses {given:g} among loops with {speeds} GB/s, but one loop shows that {right:g} is possible")}


def judge(part: Part) -> None:
    """Judge lists in which the fastest loop comes first, last, and in the middle."""
    choose_roof = part.function_alone("choose_roof")
    for speeds in ([6.1, 6.7, 9.9], [9.9, 6.7, 6.1], [6.1, 9.9, 6.7]):
        loops = [{"loop": f"loop {number}", "gb_per_s": speed} for number, speed in enumerate(speeds)]
        answer = part.call(choose_roof, loops)["gb_per_s"]
        if answer != max(speeds):
            raise part.wrong("still", speeds=", ".join(map(str, speeds)), given=answer, right=max(speeds))
    part.note("the fastest loop is the roof, in any order")
