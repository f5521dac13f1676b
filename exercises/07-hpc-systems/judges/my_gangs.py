"""Judge my_gangs.py of 7.5: a clock asks for decisions and checks each of them, on small clusters and then on whole days."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gangs import Day, Fault, Gang, Place, count_racks, count_waits, find_wait, make_days

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "partial": Way(
        "you started half a gang. {fault}. The ranks that run wait for those that do not, and hold their nodes meanwhile",
        ("if sum(free[rack] for rack in racks) < nodes:", "if not any(free.values()):"),
    ),
    "taken": Way(
        "you gave the same nodes away twice. {fault}",
        ("        free.update(subtract(free, place))\n", ""),
    ),
    "split": Way(
        "you spread a gang over more racks than it needs. {fault}. Between racks its ranks share the links",
        ("[: -(-nodes // size)]", "[: 1 - (-nodes // size)]"),
    ),
    "not-started": Way(
        "you kept the first gang waiting unnecessarily. {fault}",
        ("    while waiting and (place", "    if waiting and (place"),
    ),
    "first-delayed": Way(
        "you let a gang pass that holds up the first. {fault}. If this happens again and again, a large gang never starts",
        (") <= reservation:", ") <= 10**9:"),
    ),
    "idle": Way(
        "you left nodes idle that a gang could use. {fault}",
        ("for gang in waiting[1:]:", "for gang in []:"),
    ),
    "emptiest-rack": Way(
        "you took the rack with the most free nodes. In {day}, gangs wait {wait:.0f} minutes on average, but only {best:.0f} "
        "if small gangs leave empty racks to gangs that need a whole one",
        ("in sorted(free, key=lambda rack: free[rack])", "in sorted(free, key=lambda rack: -free[rack])"),
        seen="gangs wait longer than necessary: in {day} {wait:.0f} minutes on average, and {best:.0f} are possible with "
        "another choice of racks",
    ),
}  # fmt: skip

_HOUR = 60
SITUATIONS = {
    "a large gang between small ones": Day(1, 4, (
        Gang("one", 3, 30), Gang("large", 4, 30), Gang("short", 1, 30), Gang("long", 1, _HOUR), Gang("last", 1, 10))),
    "two racks with two free nodes each": Day(2, 4, (
        Gang("one", 2, 30), Gang("two", 2, 40), Gang("three", 2, 90), Gang("four", 4, 30), Gang("five", 2, 20))),
    "a gang of two racks": Day(3, 4, (
        Gang("one", 1, 50), Gang("two", 7, 30), Gang("three", 8, 30), Gang("four", 2, 20), Gang("five", 4, 90))),
    "one rack": Day(1, 8, tuple(
        Gang(f"g{number}", nodes, 10 * nodes, 5 * number) for number, nodes in enumerate((3, 5, 8, 1, 2, 4)))),
    "gangs that arrive together": Day(2, 2, tuple(Gang(f"g{number}", 1 + number % 2, 20) for number in range(9))),
}  # fmt: skip
PUZZLES = (1, 2, 3, 4)
MAX_WAIT = 1.10
"""Of the mean wait of all days: two right solutions that choose differently between equal racks differ by 2 %."""
EMPTY_RACKS = {
    "a cluster with an empty rack": Day(2, 4, (Gang("rest", 3, 120), Gang("small", 1, _HOUR), Gang("whole", 4, 30))),
    "a cluster whose first rack is empty": Day(2, 4, (
        Gang("short", 4, 10), Gang("rest", 3, 120), Gang("small", 1, _HOUR, 20), Gang("whole", 4, 30, 20))),
}  # fmt: skip
"""`small` fits beside `rest`; if it takes the empty rack, `whole` waits for an hour."""


def judge(part: Part) -> None:
    """Judge the answers of `schedule` by the waits of the gangs."""
    schedule = part.function("schedule")
    for name, day in SITUATIONS.items():
        _count_waits(part, schedule, name, [day])
    for name, day in EMPTY_RACKS.items():
        if (wait := _count_waits(part, schedule, name, [day])) > 0:
            raise part.wrong("emptiest-rack", name, output=wait, day=name, wait=wait, best=0)
    days = [day for puzzle in PUZZLES for day in make_days(puzzle)]
    wait, best = _count_waits(part, schedule, "four puzzles", days), float(count_waits(days, _schedule)["mean_wait_min"])
    if wait > MAX_WAIT * best:
        raise part.wrong("emptiest-rack", "four puzzles", output=wait, day="the days of four puzzles", wait=wait, best=best)
    count = len(SITUATIONS) + len(EMPTY_RACKS) + len(days)
    part.note(f"{count} days, every answer checked; gangs wait {wait:.0f} minutes on average")


def _count_waits(part: Part, schedule: Callable[..., Any], name: str, days: Sequence[Day]) -> float:
    """Return the mean wait in minutes. Raises Verdict if a decision has a fault."""

    def ask(*state: Any) -> Any:
        return part.call(schedule, *state, case=name)

    try:
        return float(count_waits(days, ask)["mean_wait_min"])
    except Fault as fault:
        if fault.kind in WAYS:
            raise part.wrong(fault.kind, name, fault=fault) from None
        raise Verdict("failed", "other", str(fault), name) from None


def _schedule(
    queue: list[dict[str, Any]], free: dict[str, int], running: list[dict[str, Any]], size: int
) -> dict[str, dict[str, int]]:
    """Return right decisions: the fullest racks first, and gangs pass if the first one's wait stays the same."""
    places: dict[str, dict[str, int]] = {}
    ends: list[tuple[int, Place]] = [(run["minutes_left"], run["nodes"]) for run in running]
    first: dict[str, Any] | None = None
    for gang in queue:
        wait_before = find_wait(first["nodes"], size, free, ends) if first else 0
        for place in _list_places(gang["nodes"], free, size):
            remaining = {rack: count - place.get(rack, 0) for rack, count in free.items()}
            next_ends = [*ends, (gang["minutes"], place)]
            if first is None or find_wait(first["nodes"], size, remaining, next_ends) <= wait_before:
                places[gang["name"]], free, ends = place, remaining, next_ends
                break
        else:
            first = first or gang
    return places


def _list_places(nodes: int, free: Mapping[str, int], size: int) -> Sequence[dict[str, int]]:
    min_racks = count_racks(nodes, size)
    if min_racks == 1:
        return [{rack: nodes} for rack in sorted(free, key=lambda rack: free[rack]) if free[rack] >= nodes]
    racks = sorted(free, key=lambda rack: -free[rack])[:min_racks]
    place: dict[str, int] = {}
    for rack in racks:
        place[rack] = min(free[rack], nodes - sum(place.values()))
    return [place] if sum(place.values()) == nodes else []
