"""The choice of 9.6: jobs with a limit of memory, the file that holds a choice, and the step that each choice takes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from decision_file import DecisionFile
from fsdp_clock import BACKWARD, FORWARD, GATHER, REDUCE, Issue, measure_exposure, simulate_step

LAYERS, PUZZLES = 8, 99
"""Layers of each job. Puzzles are numbered from 1."""
ORDERS = {
    "torch's default": (0, 1, True),
    "1 ahead in forward": (1, 1, True),
    "2 ahead in forward": (2, 1, True),
    "2 ahead in backward": (0, 2, True),
    "whole after forward": (0, 1, False),
}
"""Layers that are gathered ahead, in forward and in backward, and whether layers are freed after forward."""
KEYS = "puzzle", "order", "room"


@dataclass(frozen=True)
class Job:
    """A model of `LAYERS` layers: times of each layer in µs, of one issue in µs, and how many layers fit into memory."""

    seconds: Mapping[str, Sequence[int]]
    issue: int
    memory: int

    def describe(self) -> str:
        """Return the job in words, a line for each kind of time."""
        times = "\n".join(f"  {kind:9} {', '.join(map(str, row))}" for kind, row in self.seconds.items())
        return f"{LAYERS} layers, in µs\n{times}\nOne issue takes {self.issue} µs. Memory has room for {self.memory} layers."


class Choice(NamedTuple):
    """An order of issue of `ORDERS`, and for how many layers memory has room."""

    order: str
    room: int


class ChoiceFile(DecisionFile):
    """The content of my_overlap.yaml."""

    @property
    def choice(self) -> Choice | None:
        """Return the choice, or None if a key is empty or wrong."""
        return Choice(self.values["order"], self.values["room"]) if self.is_complete else None


def make_job(puzzle: int) -> Job:
    """Return the job of a puzzle."""
    source = random.Random(1000 + puzzle)
    forward = [source.randrange(1000, 5001, 500) for _ in range(LAYERS)]
    longest = source.choice((3000, 5000, 8000))
    seconds = {
        GATHER: [source.randrange(1000, longest + 1, 500) for _ in range(LAYERS)],
        FORWARD: forward,
        BACKWARD: [2 * time for time in forward],
        REDUCE: [source.randrange(1000, longest + 1, 500) for _ in range(LAYERS)],
    }
    return Job(seconds, issue=source.choice((20, 1000, 2000)), memory=source.choice((3, 4, 5, LAYERS)))


def read_choice(document: object) -> ChoiceFile:
    """Return a choice from the content of a YAML file. Faults are unknown keys, and values of a wrong type or out of range."""
    file = ChoiceFile()
    file.read(document, KEYS, _find_fault, example="room: 3")
    return file


def _find_fault(key: str, value: object) -> str | None:
    if key == "order":
        is_name = isinstance(value, str) and value in ORDERS
        return None if is_name else f"order: {value} is not one of {', '.join(ORDERS)}"
    most = PUZZLES if key == "puzzle" else LAYERS
    is_number = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
    return None if is_number else f"{key}: {value} is not a whole number from 1 to {most}"


def find_problems(job: Job, choice: Choice) -> dict[str, str]:
    """Return the limits that a choice does not meet, each with a sentence."""
    *ahead, frees = ORDERS[choice.order]
    problems = {}
    if choice.room > job.memory:
        problems["memory"] = f"memory has room for {job.memory} layers, not for {choice.room}"
    if not frees and choice.room < LAYERS:
        problems["whole"] = f"all {LAYERS} layers are whole at the end of forward, and there is room for {choice.room}"
    elif choice.room < max(ahead) + 1:
        problems["ahead"] = (
            f"{max(ahead)} layers ahead and the one that is computed need room for {max(ahead) + 1}, not for {choice.room}"
        )
    return problems


def list_rows(job: Job, orders: Mapping[str, Sequence[Issue]]) -> list[dict[str, Any]]:
    """Return a row for each choice that fits, if torch issues a step in these `orders`, the best first.

    A shorter step is better. Of choices with equal steps, the one with less room is better: memory that layers do not need
    leaves room for longer sequences.
    """
    rows = []
    for name, issues in orders.items():
        for room in range(1, LAYERS + 1):
            if not find_problems(job, Choice(name, room)):
                spans = simulate_step(issues, job.seconds, room, job.issue)
                end, exposed, _ = measure_exposure(issues, spans)
                percent = 100 * float(exposed / end)
                rows.append({"order": name, "room": room, "end": int(end), "exposed_percent": percent})
    return sorted(rows, key=lambda row: (row["end"], row["room"]))
