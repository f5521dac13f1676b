"""Judge my_overlap.yaml of 9.6 by the clock of FSDP: the limit of memory, the step among all that fit, and its room."""

from __future__ import annotations

from fsdp_clock import BACKWARD, FORWARD, FREE, GATHER, REDUCE, Issue
from overlap_choice import LAYERS, ORDERS, find_problems, list_rows, make_job, read_choice

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "memory": Way("{order}: {reason}", ("room: 3", "room: 5")),
    "whole": Way("{order}: {reason}", ("order: 1 ahead in forward\nroom: 3", "order: whole after forward\nroom: 4")),
    "ahead": Way("{order}: {reason}", ("order: 1 ahead in forward\nroom: 3", "order: 2 ahead in forward\nroom: 2")),
    "longer-step": Way(
        "{order} with room for {room} layers fits, but a step takes {end:,} µs, and with another choice {best:,} µs. "
        "What does computing wait for: a gather that takes long, one that is issued late, or room?",
        ("order: 1 ahead in forward", "order: torch's default"),
    ),
    "more-room": Way(
        "a step of {best:,} µs is the shortest that fits, but room for {least} layers is enough for it, and you take {room}: "
        "keep the rest of the memory for longer sequences",
        ("room: 3", "room: 4"),
    ),
}


def judge(part: Part) -> None:
    """Judge the file's entries, then the limits of the job, the step, and finally the room."""
    file = read_choice(part.document.data)
    if file.faults:
        raise Verdict("failed", "not-a-choice", file.faults[0])
    if file.choice is None:
        raise Verdict("open", sentence=f"still empty: {', '.join(file.empty)}")
    job, (order, room) = make_job(file.values["puzzle"]), file.choice
    for name, reason in find_problems(job, file.choice).items():
        raise part.wrong(name, order=order, reason=reason)
    rows = list_rows(job, {name: _list_issues(*way) for name, way in ORDERS.items()})
    row = next(row for row in rows if (row["order"], row["room"]) == file.choice)
    best = rows[0]
    if row["end"] > best["end"]:
        raise part.wrong("longer-step", order=order, room=room, end=row["end"], best=best["end"])
    if room > best["room"]:
        raise part.wrong("more-room", room=room, least=best["room"], best=best["end"])
    part.note(f"no choice that fits has a shorter step than {best['end']:,} µs, and none with this step has less room")


def _list_issues(forward: int, backward: int, frees: bool) -> list[Issue]:
    """Return the order in which torch issues a step, as the run records it."""
    issues: list[Issue] = []
    for kind, sequence, ahead in ((FORWARD, [*range(LAYERS)], forward), (BACKWARD, [*range(LAYERS)][::-1], backward)):
        gathers = [(GATHER, layer) for layer in sequence] if frees or kind == FORWARD else []
        issues += gathers[:ahead]
        for place, layer in enumerate(sequence):
            issues += gathers[place + ahead : place + ahead + 1]
            issues += [(kind, layer)] + [(FREE, layer)] * (frees or kind == BACKWARD) + [(REDUCE, layer)] * (kind == BACKWARD)
    return issues
