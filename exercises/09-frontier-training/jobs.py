"""Simulated jobs of thousands of GPUs, for 9.8: one that hangs, and one that is slow. Each has a planted fault.

A job has `dp` copies of a model in `pp` stages, each stage in `tp` slices. Every rank executes its program of 1F1B: sums in its
tp group, messages to neighbouring stages, and at the end of a step two collectives in its dp group. There is no network: a
collective ends when all members have called the same operation.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any

import torch

LAYERS = 2  # of each stage
MAX_RANKS = 16384
FAULTS = ("stops", "skips", "swaps")
Record = list[dict[str, Any]]
Operation = tuple[str, str, str]  # its kind (send, receive, collective), its group, its text


def order_micro_batches(stage: int, stages: int, count: int) -> list[tuple[str, int]]:
    """Return what a stage computes, in order (1F1B): forwards until the pipeline is full, then one forward, one backward."""
    filling = min(stages - stage - 1, count)
    order = [("forward", number) for number in range(filling)]
    for number in range(count - filling):
        order += [("forward", filling + number), ("backward", number)]
    return order + [("backward", number) for number in range(count - filling, count)]


@dataclass(frozen=True)
class Layout:
    """Divide a job's ranks. Rank (d * pp + p) * tp + t is slice t of stage p of copy d."""

    dp: int
    pp: int
    tp: int
    micro_batches: int

    @property
    def ranks(self) -> int:
        """Return the number of ranks."""
        return self.dp * self.pp * self.tp

    def find_rank(self, d: int, p: int, t: int) -> int:
        """Return the number of a rank."""
        return (d * self.pp + p) * self.tp + t

    def list_members(self) -> dict[str, list[int]]:
        """Return the ranks of each group, by its name. In a group of two stages, the sender comes first."""
        members = {
            f"tp {d} {p}": [self.find_rank(d, p, t) for t in range(self.tp)] for d in range(self.dp) for p in range(self.pp)
        }
        for p in range(self.pp):
            for t in range(self.tp):
                members[f"dp {p} {t}"] = [self.find_rank(d, p, t) for d in range(self.dp)]
                for d in range(self.dp if p < self.pp - 1 else 0):
                    pair = [self.find_rank(d, p, t), self.find_rank(d, p + 1, t)]
                    members[f"pp {d} {p} {t} forward"], members[f"pp {d} {p} {t} backward"] = pair, pair[::-1]
        return members

    def list_program(self, d: int, p: int, t: int) -> list[Operation]:
        """Return the operations of a rank in one step."""
        program: list[Operation] = []
        for kind, number in order_micro_batches(p, self.pp, self.micro_batches):
            ahead = kind == "forward"
            source, target = (p - 1, p) if ahead else (p, p - 1)  # the group has the number of its first stage
            text = f"{kind} {number}"
            if (p > 0) if ahead else (p < self.pp - 1):
                program.append(("receive", f"pp {d} {source} {t} {kind}", f"receive {text}"))
            program += [("collective", f"tp {d} {p}", f"all_reduce {text}, layer {layer}") for layer in range(LAYERS)]
            if (p < self.pp - 1) if ahead else (p > 0):
                program.append(("send", f"pp {d} {target} {t} {kind}", f"send {text}"))
        return [*program, ("collective", f"dp {p} {t}", "reduce_scatter"), ("collective", f"dp {p} {t}", "all_gather")]


@dataclass
class Hang:
    """A job in which all ranks wait in the end, because one rank did something different from the others.

    `culprit` is that rank, `kind` what it did ("stopped" or "differs"), `records` the last operation of each rank in each of
    its groups, in order, and `members` the ranks of each group.
    """

    layout: Layout
    culprit: int
    kind: str
    records: list[Record] = field(default_factory=list)
    members: dict[str, list[int]] = field(default_factory=dict)

    def count_waiting(self, dimension: str) -> int:
        """Return how many ranks wait in groups of tp, pp or dp."""
        return sum(record[-1]["state"] == "waiting" and record[-1]["group"].startswith(dimension) for record in self.records)


def hang(layout: Layout, fault: str, seed: int, *, skew_ms: float = 50.0, late: bool = False) -> Hang:
    """Return a job with a fault: a rank that stops, skips a sum, or calls two operations in reverse order.

    `seed` chooses the rank. With `late`, the fault is near the end of the step, so that many ranks finish. The clocks of nodes
    (of eight ranks) differ by up to `skew_ms`.
    """
    chance = random.Random(seed)
    culprit = chance.randrange(layout.ranks)
    programs = [layout.list_program(d, p, t) for d in range(layout.dp) for p in range(layout.pp) for t in range(layout.tp)]
    program, stop = programs[culprit], -1
    sums = [place for place, (_, group, _) in enumerate(program) if group.startswith("tp")]
    if fault == "stops":
        stop = len(program) - 1 if late else chance.choice(sums[: len(sums) // 2])
    elif fault == "skips":
        skipped = chance.choice(
            sums[0 : len(sums) // 2 * 2 : 2]
        )  # the first sum of a micro-batch: the next is of the same group
        program.pop(skipped)
    else:
        place = chance.choice([place for place in sums if place + 1 in sums and program[place][1] == program[place + 1][1]])
        program[place], program[place + 1] = program[place + 1], program[place]
    skews = [chance.uniform(-skew_ms, skew_ms) for _ in range(layout.ranks // 8 + 1)]
    members = layout.list_members()
    records = _run(programs, culprit if fault == "stops" else -1, stop, members, skews)
    return Hang(layout, culprit, "stopped" if fault == "stops" else "differs", records, members)


def _run(
    programs: list[list[Operation]], stopped: int, stop: int, members: dict[str, list[int]], skews: list[float]
) -> list[Record]:
    """Execute all programs until no rank can go on, and return the record of each rank. Sends do not wait."""
    arrived: dict[tuple[str, int], list[str]] = defaultdict(list)
    waiting: dict[tuple[str, int], list[int]] = defaultdict(list)
    places, clocks = [0] * len(programs), [0.0] * len(programs)
    numbers: list[dict[str, int]] = [defaultdict(int) for _ in programs]
    records: list[dict[str, dict[str, Any]]] = [{} for _ in programs]
    ready, ended = deque(range(len(programs))), dict[tuple[str, int], float]()
    while ready:
        rank = ready.popleft()
        for entry in records[rank].values():
            if entry["state"] == "waiting":
                entry["state"] = "completed"
                clocks[rank] = max(clocks[rank], ended.get((entry["group"], entry["number"]), 0.0))
        while places[rank] < len(programs[rank]) and (rank, places[rank]) != (stopped, stop):
            kind, group, text = programs[rank][places[rank]]
            key = (group, numbers[rank][group])
            places[rank] += 1
            numbers[rank][group] += 1
            clocks[rank] += 1.0
            arrived[key].append(text.removeprefix("send ").removeprefix("receive "))
            is_whole = len(arrived[key]) == len(members[group]) and len(set(arrived[key])) == 1
            records[rank].pop(group, None)
            records[rank][group] = {
                "group": group, "number": key[1], "operation": text, "time_ms": round(clocks[rank] + skews[rank // 8], 3),
                "state": "completed" if is_whole or kind == "send" else "waiting",
            }  # fmt: skip
            ended[key] = max(ended.get(key, 0.0), clocks[rank])
            if is_whole:
                ready.extend(waiting.pop(key, []))
                clocks[rank] = ended[key]
            elif kind != "send":
                waiting[key].append(rank)
                break
    return [list(record.values()) for record in records]


# --- a job that is slow ------------------------------------------------------------------------------------------------

SICK = ("gpu", "link", "data", "nobody")
SLOWER, LATE_S, SLOW_RING = 1.12, 6.0, 2.5
Seconds = dict[str, torch.Tensor]


@dataclass
class SlowJob:
    """A job in which each rank recorded its seconds, as tensors [step, dp, pp, tp], and the sick part of it.

    `sick` is ("gpu", rank), ("link", stage), ("data", copy) or ("nobody", None). `step_s` has the seconds of each step.
    """

    layout: Layout
    sick: tuple[str, int | None]
    seconds: Seconds
    step_s: torch.Tensor


def slow_down(layout: Layout, kind: str, seed: int, *, steps: int = 10, pauses: float = 3.0, slower: float = SLOWER) -> SlowJob:
    """Return a job of `steps` steps in which one part of the given `kind` is sick. `seed` chooses the part.

    A sick GPU computes `slower` times as long. A slow link makes the rings of its stage slower. A slow data loader makes a copy
    begin later. In each step, about `pauses` ranks, not always the same, collect garbage for as long as four forwards take. The
    first stage also has the embedding, the last one the loss.
    """
    chance = random.Random(seed)
    number = {"gpu": layout.ranks, "link": layout.pp, "data": layout.dp}.get(kind)
    sick = None if number is None else chance.randrange(number)
    source = torch.Generator().manual_seed(seed)
    rows = [_simulate_step(layout, kind, sick, source, pauses, slower) for _ in range(steps)]
    seconds = {name: torch.stack([row[name] for row, _ in rows]) for name in rows[0][0]}
    return SlowJob(layout, (kind, sick), seconds, torch.tensor([end for _, end in rows]))


def _simulate_step(
    layout: Layout, kind: str, sick: int | None, source: torch.Generator, pauses: float, slower: float
) -> tuple[Seconds, float]:
    """Return the seconds of all ranks in one step, and its length."""
    dp, pp, tp = layout.dp, layout.pp, layout.tp
    shape = (dp, pp, tp)
    speed, start = torch.ones(dp, pp, tp, dtype=torch.float64), torch.zeros(dp, dtype=torch.float64)
    speed[:, 0] *= 1.15
    speed[:, -1] *= 1.1
    if kind == "gpu" and sick is not None:
        speed.view(-1)[sick] *= slower
    if kind == "data" and sick is not None:
        start[sick] = LATE_S
    pause = torch.zeros(shape, dtype=torch.float64)
    count = int(torch.poisson(torch.tensor(pauses), generator=source))
    pause.view(-1)[torch.randint(layout.ranks, (count,), generator=source)] = 4.0
    compute, wait_tp, wait_pp = (torch.zeros(shape, dtype=torch.float64) for _ in range(3))
    orders = [order_micro_batches(p, pp, layout.micro_batches) for p in range(pp)]
    free, places, done = [start.clone() for _ in range(pp)], [0] * pp, dict[tuple[int, str, int], torch.Tensor]()
    while any(place < len(order) for place, order in zip(places, orders, strict=True)):
        for p, order in enumerate(orders):
            while places[p] < len(order):
                way, batch = order[places[p]]
                before = p - 1 if way == "forward" else p + 1
                if 0 <= before < pp and (before, way, batch) not in done:
                    break
                begin = torch.maximum(free[p], done.get((before, way, batch), start))
                wait_pp[:, p] += (begin - free[p])[:, None]
                noise = 1 + 0.01 * torch.randn(dp, tp, generator=source, dtype=torch.float64)
                own_s = speed[:, p] * noise * (1 if way == "forward" else 2)
                own_s = own_s + (pause[:, p] if places[p] == 3 else 0)
                longest = own_s.max(1, keepdim=True).values
                compute[:, p] += own_s
                wait_tp[:, p] += longest - own_s
                free[p] = begin + longest[:, 0]
                done[p, way, batch] = free[p]
                places[p] += 1
    arrival = torch.stack(free, 1)[:, :, None].expand(shape)
    last = arrival.max(0, keepdim=True).values
    ring = torch.full((1, pp, tp), 2.0, dtype=torch.float64)
    if kind == "link":
        ring[:, sick] *= SLOW_RING
    seconds = {"compute": compute, "wait_tp": wait_tp, "wait_pp": wait_pp, "wait_dp": last - arrival,
               "ring_dp": ring.expand(shape).clone()}  # fmt: skip
    return seconds, float((last + ring).max())


def find_lost_percent(layout: Layout, kind: str, seed: int) -> float:
    """Return the percentage by which the sick part of `slow_down` lengthens a step in which no rank pauses."""
    sick, healthy = (slow_down(layout, name, seed, steps=2, pauses=0.0) for name in (kind, "nobody"))
    return float(100 * (sick.step_s.mean() / healthy.step_s.mean() - 1))
