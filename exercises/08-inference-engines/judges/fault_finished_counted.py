"""Judge a repaired copy: a request takes no memory after its end."""

from __future__ import annotations

from paged_engine import Request

from gpucourse.judge import Part, Way

WAYS = {"still": Way("two requests of 10 and 20 places: after the first has ended, {room} are counted, not 20")}


def judge(part: Part) -> None:
    """Judge the memory of two requests, one of which ends."""
    holder = part.call(part.function("Reserved"), lambda prompt, _answer, _now: prompt)
    first, second = Request("first", 0, 10, 1), Request("second", 0, 20, 1)
    for request in (first, second):
        part.call(holder.grow, request, 1)
    part.call(holder.release, first)
    room = part.call(holder.room)
    if room != 20:
        raise part.wrong("still", room=room)
    part.note("a request that has ended takes no memory")
