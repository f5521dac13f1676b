"""A cluster of racks, the gangs that want its nodes, and a clock that calls a scheduler at every change.

A gang is a job whose ranks start together or not at all, as a torchrun job does. The ranks of a gang in one rack send through
one switch; between racks, the links are shared. So a gang gets as few racks as its size allows.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Place = Mapping[str, int]  # nodes of each rack
Scheduler = Callable[[list[dict[str, Any]], dict[str, int], list[dict[str, Any]], int], Mapping[str, Place]]


class Fault(Exception):
    """A decision that no cluster can carry out, or that breaks a rule of the queue. `kind` names the rule."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class Gang:
    """A job: the nodes that it needs, how many minutes it then runs, and the minute in which it joins the queue."""

    name: str
    nodes: int
    minutes: int
    arrives: int = 0


@dataclass(frozen=True)
class Day:
    """A cluster of `racks` racks with `size` nodes each, and its gangs in the order of their arrival."""

    racks: int
    size: int
    gangs: tuple[Gang, ...]


@dataclass
class _Run:
    gang: Gang
    place: dict[str, int]
    end: int


def make_days(puzzle: int) -> list[Day]:
    """Return ten days that follow from the puzzle's number."""
    return [_make_day(random.Random(10 * puzzle + number)) for number in range(10)]


def _make_day(chance: random.Random) -> Day:
    """Return four racks of eight nodes with 24 gangs."""
    minute, gangs = 0, []
    for number in range(24):
        nodes = chance.choice([1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12])
        gangs.append(Gang(f"job-{number:02}", nodes, chance.choice([10, 20, 30, 60, 90, 120]), minute))
        minute += chance.choice([0, 0, 0, 5, 5, 10])
    return Day(4, 8, tuple(gangs))


def count_racks(nodes: int, size: int) -> int:
    """Return the fewest racks of `size` nodes that can hold a gang."""
    return math.ceil(nodes / size)


def find_wait(nodes: int, size: int, free: Mapping[str, int], running: Sequence[tuple[int, Place]]) -> int:
    """Return the minutes until a gang fits into the smallest possible number of racks, if nothing else starts.

    `running` has the remaining minutes and the nodes of each gang that runs.
    """
    free, minute = dict(free), 0
    for remaining, place in sorted(running, key=lambda item: item[0]):
        if _fits(nodes, size, free):
            return minute
        minute = remaining
        free = {rack: count + place.get(rack, 0) for rack, count in free.items()}
    return minute


def _fits(nodes: int, size: int, free: Mapping[str, int]) -> bool:
    return sum(sorted(free.values())[-count_racks(nodes, size) :]) >= nodes


def run_day(day: Day, schedule: Scheduler, *, rules: bool = True) -> dict[str, int]:
    """Return the minute in which each gang starts. `schedule` is called whenever a gang arrives or ends.

    Raises Fault if an answer assigns nodes that are not free or starts half a gang. With `rules`, it is also raised if an
    answer splits a gang without need, delays the first gang that waits, or leaves nodes idle that another gang could use
    until the first one starts.
    """
    free = {chr(ord("a") + number): day.size for number in range(day.racks)}
    coming, queue, running, starts = list(day.gangs), list[Gang](), list[_Run](), dict[str, int]()
    while coming or queue:
        minutes = [run.end for run in running] + [gang.arrives for gang in coming]
        if not minutes:
            raise Fault("nothing", f"nothing runs and nothing starts, but {queue[0].name} waits")
        minute = min(minutes)
        for run in [run for run in running if run.end <= minute]:
            running.remove(run)
            free = {rack: count + run.place.get(rack, 0) for rack, count in free.items()}
        queue += [gang for gang in coming if gang.arrives <= minute]
        coming = [gang for gang in coming if gang.arrives > minute]
        decision = _Decision(day.size, minute, tuple(queue), dict(free), tuple(running))
        for gang, place in decision.read(_ask(schedule, decision)):
            running.append(_Run(gang, place, minute + gang.minutes))
            starts[gang.name] = minute
            queue.remove(gang)
            free = {rack: count - place.get(rack, 0) for rack, count in free.items()}
            decision.started.append((gang, place))
        if rules:
            decision.check_rules()
    return starts


def count_waits(days: Sequence[Day], schedule: Scheduler, *, rules: bool = True) -> dict[str, float]:
    """Return `mean_wait_min` and `longest_wait_min` of all gangs, and `busy_percent` of the cluster while gangs ran.

    `largest_wait_min` is the mean wait of the largest gangs of the days.

    Raises Fault as `run_day` does.
    """
    waits, largest, busy_minutes, total_minutes = list[int](), list[int](), 0, 0
    for day in days:
        starts = run_day(day, schedule, rules=rules)
        waits += [starts[gang.name] - gang.arrives for gang in day.gangs]
        gang = max(day.gangs, key=lambda gang: gang.nodes)
        largest.append(starts[gang.name] - gang.arrives)
        busy_minutes += sum(gang.nodes * gang.minutes for gang in day.gangs)
        total_minutes += day.racks * day.size * max(starts[gang.name] + gang.minutes for gang in day.gangs)
    return {
        "mean_wait_min": sum(waits) / len(waits),
        "longest_wait_min": max(waits),
        "largest_wait_min": sum(largest) / len(largest),
        "busy_percent": 100 * busy_minutes / total_minutes,
    }


def replay(_world: object, puzzle: int) -> dict[str, Any]:
    """Return the waits of all days with the learner's scheduler, or the rule that it breaks."""
    import my_gangs

    try:
        return {"fault": None, **count_waits(make_days(puzzle), my_gangs.schedule)}
    except Fault as fault:
        return {"fault": str(fault)}


@dataclass
class _Decision:
    """One call of the scheduler: the state before it, and the gangs that its answer started."""

    size: int
    minute: int
    queue: tuple[Gang, ...]
    free: dict[str, int]
    running: tuple[_Run, ...]

    def __post_init__(self) -> None:
        self.started: list[tuple[Gang, dict[str, int]]] = []

    def read(self, answer: object) -> list[tuple[Gang, dict[str, int]]]:
        """Return the gangs that start and their nodes. Raises Fault if the cluster cannot start them."""
        gangs_by_name = {gang.name: gang for gang in self.queue}
        if not isinstance(answer, Mapping) or not all(isinstance(place, Mapping) for place in answer.values()):
            raise Fault("form", f"it returned {answer!r:.80}: return a dict of gangs, with a dict of racks and nodes for each")
        placed, remaining = [], dict(self.free)
        for name, place in answer.items():
            if name not in gangs_by_name:
                raise Fault("form", f"it starts {name!r:.40}, which does not wait")
            for rack, count in place.items():
                if rack not in remaining or isinstance(count, bool) or not isinstance(count, int) or count < 0:
                    raise Fault("form", f"it assigns {name} {count!r:.20} nodes of rack {rack!r:.20}")
                remaining[rack] -= count
                if remaining[rack] < 0:
                    raise Fault("taken", self._say(f"{name} gets nodes of rack {rack} that are not free"))
            if sum(place.values()) != gangs_by_name[name].nodes:
                raise Fault(
                    "partial", self._say(f"{name} needs {gangs_by_name[name].nodes} nodes and gets {sum(place.values())}")
                )
            placed.append((gangs_by_name[name], {rack: count for rack, count in place.items() if count}))
        return placed

    def check_rules(self) -> None:
        """Raise Fault if the decision breaks a rule of the queue."""
        for gang, place in self.started:
            if len(place) > (min_racks := count_racks(gang.nodes, self.size)):
                raise Fault(
                    "split", self._say(f"{gang.name} has its {gang.nodes} nodes in {len(place)} racks; {min_racks} would do")
                )
        places = {gang.name: place for gang, place in self.started}
        first = next((gang for gang in self.queue if gang.name not in places), None)
        if first is None:
            return
        earlier_gangs, later_gangs = self.queue[: self.queue.index(first)], self.queue[self.queue.index(first) + 1 :]
        state = self._apply([(gang, places[gang.name]) for gang in earlier_gangs], self.free, self._list_running())
        wait = find_wait(first.nodes, self.size, *state)
        if wait == 0:
            raise Fault("not-started", self._say(f"{first.name} is the first that waits, and nodes are free for it"))
        for gang, place in self.started:
            if gang in earlier_gangs:
                continue
            state = self._apply([(gang, place)], *state)
            if (later_wait := find_wait(first.nodes, self.size, *state)) > wait:
                text = f"{gang.name} passes {first.name}, which could start in {wait} minutes and now starts in {later_wait}"
                raise Fault("first-delayed", self._say(text))
        for gang in later_gangs:
            if gang.name not in places:
                self._check_idle(gang, first, wait, state)

    def _check_idle(self, gang: Gang, first: Gang, wait: int, state: tuple[dict[str, int], list[tuple[int, Place]]]) -> None:
        """Raise Fault if a gang waits although a rack has nodes for it and the first gang would not wait longer."""
        for rack, count in state[0].items():
            if (
                gang.nodes <= count
                and find_wait(first.nodes, self.size, *self._apply([(gang, {rack: gang.nodes})], *state)) <= wait
            ):
                text = f"{gang.name} waits, though it would fit into rack {rack}, and {first.name} would not wait longer"
                raise Fault("idle", self._say(text))

    def _list_running(self) -> list[tuple[int, Place]]:
        return [(run.end - self.minute, run.place) for run in self.running]

    @staticmethod
    def _apply(
        started: Sequence[tuple[Gang, Place]], free: Mapping[str, int], running: Sequence[tuple[int, Place]]
    ) -> tuple[dict[str, int], list[tuple[int, Place]]]:
        """Return the free nodes and the running gangs after these gangs have started."""
        free, running = dict(free), list(running)
        for gang, place in started:
            free = {rack: count - place.get(rack, 0) for rack, count in free.items()}
            running.append((gang.minutes, place))
        return free, running

    def _say(self, text: str) -> str:
        return f"minute {self.minute}, {', '.join(f'{rack}: {count} free' for rack, count in self.free.items())}: {text}"


def _ask(schedule: Scheduler, decision: _Decision) -> object:
    queue = [{"name": gang.name, "nodes": gang.nodes, "minutes": gang.minutes} for gang in decision.queue]
    running = [
        {"name": run.gang.name, "nodes": dict(run.place), "minutes_left": run.end - decision.minute} for run in decision.running
    ]
    return schedule(queue, dict(decision.free), running, decision.size)


# --- two schedulers that break a rule ----------------------------------------------------------------------------------


def keep_order(queue: list[dict], free: dict[str, int], _running: list[dict], size: int) -> dict[str, Place]:
    """Return the gangs that start: those at the front of the queue, up to the first that has to wait."""
    starts: dict[str, Place] = {}
    for gang in queue:
        if not (place := _take(gang["nodes"], free, size)):
            break
        starts[gang["name"]] = place
    return starts


def take_what_fits(queue: list[dict], free: dict[str, int], _running: list[dict], size: int) -> dict[str, Place]:
    """Return the gangs that start: every gang for which enough nodes are free, even if others wait in front of it."""
    return {gang["name"]: place for gang in queue if (place := _take(gang["nodes"], free, size))}


def _take(nodes: int, free: dict[str, int], size: int) -> dict[str, int]:
    """Return nodes of the emptiest racks and remove them from `free`, or return nothing if too few are free."""
    racks = sorted(free, key=lambda rack: -free[rack])[: count_racks(nodes, size)]
    place: dict[str, int] = {}
    if sum(free[rack] for rack in racks) < nodes:
        return place
    for rack in racks:
        place[rack] = min(free[rack], nodes - sum(place.values()))
        free[rack] -= place[rack]
    return place
