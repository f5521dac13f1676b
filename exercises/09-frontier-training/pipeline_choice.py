"""Which schedules fit a pipeline's limits, and how long a step takes with each on a simulated clock. 9.4 chooses among them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pieces import Clock, Slot, Times, count_held, count_messages, predict_bubble_time, predict_held, repeat, simulate
from schedules import order_1f1b, order_dual_pipe, order_gpipe, order_interleaved, order_zero_bubble_v

PUZZLES, STEPS = 99, 2
"""Puzzles are numbered from 1. The last of `STEPS` steps shows what a further step takes."""
SCHEDULES = "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"
CHUNKS = 1, 2, 4
SPLIT = "zb-h1", "zb-v", "dualpipe"
"""These compute input and weight gradients separately."""


class Choice(NamedTuple):
    """A schedule, and how many stages a rank has."""

    schedule: str
    chunks: int

    @property
    def label(self) -> str:
        """Return a name for tables."""
        return f"{self.schedule}, {self.chunks} stages" if self.schedule == "interleaved" else self.schedule


ALL_CHOICES = (Choice("gpipe", 1), Choice("1f1b", 1), Choice("interleaved", 2), Choice("interleaved", 4), Choice("zb-h1", 1),
               Choice("zb-v", 2), Choice("dualpipe", 2))  # fmt: skip


@dataclass(frozen=True)
class Job:
    """A pipeline and its limits: `ranks`, `micro_batches`, `layers` of the model, and the times of one rank's layers.

    `memory` is how many micro-batches fit, each with all layers of a rank. `copies` is how many times a rank's share of the
    weights fits. `messages` is how many messages of a micro-batch the network carries, as a multiple of those of 1F1B.
    `splits` says whether the layers can compute input and weight gradients separately. If `waits`, all ranks wait for each
    other after each step, for the norm of all gradients.
    """

    ranks: int
    micro_batches: int
    layers: int
    times: Times
    memory: int
    copies: int = 1
    messages: int = 5
    splits: bool = True
    waits: bool = True


def make_job(puzzle: int) -> Job:
    """Return the job of a puzzle, for which at least one schedule fits."""
    if puzzle == 1:
        return Job(8, 32, 64, Times(10, 12, 8, 26), memory=10, copies=2, messages=1)
    source = random.Random(puzzle)
    ranks = source.choice((4, 8))
    micro_batches = ranks * source.choice((2, 3, 4))
    forward = source.randint(8, 14)
    inputs, weights = forward + source.randint(0, 4), forward - source.randint(0, 4)
    pair = round((forward + inputs + weights) * source.choice((0.86, 0.92, 1)))
    return Job(
        ranks, micro_batches, source.choice((56, 64, 96)), Times(forward, inputs, weights, pair),
        memory=ranks + source.choice((0, 1, 3, 6)), copies=source.choice((1, 2)), messages=source.choice((1, 2, 5)),
        splits=source.random() < 0.8, waits=source.random() < 0.7,
    )  # fmt: skip


def list_rows(job: Job, orders: Sequence[Sequence[Slot]] | None = None) -> list[dict[str, Any]]:
    """Return a row for each schedule, and one for the learner's `orders` of the job's ranks, if there are any."""
    rows = [make_row(job, choice) for choice in ALL_CHOICES]
    return rows if orders is None else [*rows, _make_own_row(job, orders)]


def make_row(job: Job, choice: Choice) -> dict[str, Any]:
    """Return a schedule's row: the end of one step and of a further one, the bubble, the memory held, and reasons against it.

    The row of zb-h1 comes from its formulas, because its order is the learner's part.
    """
    schedule, chunks = choice
    formula = float(predict_bubble_time(schedule, job.ranks, job.times, chunks))
    row = {"label": choice.label, "schedule": schedule, "chunks": chunks, "by_formula": formula}
    if problems := _find_shape_problems(job, choice):
        return {
            **row,
            **dict.fromkeys(("end", "step", "bubble", "bubble_percent", "held", "messages_times")),
            "problems": problems,
        }
    if schedule == "zb-h1":
        end = job.micro_batches * job.times.step + formula
        held = float(predict_held(schedule, job.ranks, job.micro_batches))
        row |= _describe(job, [end, 2 * end], formula, held, 2 * (job.ranks - 1) * job.micro_batches)
    else:
        orders, stages, parts = _order(job, choice)
        times = job.times
        pair = None if times.pair is None else times.pair / parts
        per_stage = Times(times.forward / parts, times.inputs / parts, times.weights / parts, pair)
        ends, bubble = _simulate_steps(job, orders, stages, per_stage)
        row |= _describe(job, ends, bubble, max(map(count_held, orders)) / parts, count_messages(orders, stages))
    return row | {"problems": _find_problems(job, choice, row)}


def _make_own_row(job: Job, orders: Sequence[Sequence[Slot]]) -> dict[str, Any]:
    ends, bubble = _simulate_steps(job, orders, job.ranks, job.times)
    row = _describe(job, ends, bubble, max(map(count_held, orders)), count_messages(orders, job.ranks))
    return {"label": "yours", "by_formula": float(predict_bubble_time("zb-h1", job.ranks, job.times)), **row}


def _simulate_steps(job: Job, orders: Sequence[Sequence[Slot]], stages: int, times: Times) -> tuple[list[float], float]:
    """Return when each of `STEPS` steps ends, and the bubble of the first step. No rank waits for all others between steps."""
    clock = simulate(repeat(orders, STEPS, job.micro_batches), stages, times.of)
    counts = [len(order) for order in orders]
    ends = [float(max(row[step * count - 1].end for row, count in zip(clock.spans, counts, strict=True)))
            for step in range(1, STEPS + 1)]  # fmt: skip
    first = Clock([row[:count] for row, count in zip(clock.spans, counts, strict=True)])
    return ends, float(first.bubble)


def _order(job: Job, choice: Choice) -> tuple[list[list[Slot]], int, int]:
    """Return the orders, the number of stages, and into how many stages the layers of a rank are divided."""
    ranks, micro_batches = job.ranks, job.micro_batches
    if choice.schedule == "interleaved":
        return order_interleaved(ranks, micro_batches, choice.chunks), ranks * choice.chunks, choice.chunks
    if choice.schedule == "zb-v":
        return order_zero_bubble_v(ranks, micro_batches), 2 * ranks, 2
    if choice.schedule == "dualpipe":
        return order_dual_pipe(ranks, micro_batches), ranks, 1
    order = order_gpipe if choice.schedule == "gpipe" else order_1f1b
    return order(ranks, micro_batches), ranks, 1


def _describe(job: Job, ends: Sequence[float], bubble: float, held: float, messages: int) -> dict[str, Any]:
    """Return the fields that every row has. `step` is the time of one of many steps."""
    further = ends[-1] - ends[-2]
    return {
        "end": ends[0], "bubble": bubble, "further_step": further, "step": ends[0] if job.waits else further,
        "bubble_percent": 100 * bubble / ends[0], "held": held,
        "messages_times": messages / (2 * (job.ranks - 1) * job.micro_batches),
    }  # fmt: skip


def _find_shape_problems(job: Job, choice: Choice) -> dict[str, str]:
    """Return the reasons for which the schedule does not exist for this job, each with a sentence."""
    parts = choice.chunks if choice.schedule in ("interleaved", "zb-v") else 1
    if job.layers % (job.ranks * parts):
        return {"layers": f"{job.layers} layers cannot be divided among {job.ranks * parts} stages"}
    if choice.schedule == "interleaved" and job.micro_batches % job.ranks:
        return {"micro-batches": f"{job.micro_batches} micro-batches are not a multiple of {job.ranks} ranks"}
    if choice.schedule == "dualpipe" and (job.micro_batches < 2 * job.ranks or job.ranks % 2 or job.micro_batches % 2):
        return {"micro-batches": f"it needs an even number of ranks and at least {2 * job.ranks} micro-batches, an even number"}
    return {}


def _find_problems(job: Job, choice: Choice, row: dict[str, Any]) -> dict[str, str]:
    """Return the limits that the schedule does not meet, each with a sentence."""
    problems = {}
    if row["held"] > job.memory:
        problems["memory"] = f"its fullest rank holds {row['held']:g} micro-batches, and {job.memory} fit"
    if choice.schedule == "dualpipe" and job.copies < 2:
        problems["copies"] = "each rank holds the weights of two stages, but only those of one fit"
    if choice.schedule in SPLIT and not job.splits:
        problems["split"] = "the layers of this job cannot compute input and weight gradients separately"
    if row["messages_times"] > job.messages:
        times = row["messages_times"]
        problems["messages"] = (
            f"it sends {times:.2f} times the messages of 1F1B, and the network carries at most {job.messages}"
        )
    return problems


def find_best(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of the schedule with the shortest step among those that fit."""
    return min((row for row in rows if "problems" in row and not row["problems"]), key=lambda row: row["step"])
