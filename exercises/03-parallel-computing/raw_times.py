"""Raw times of training steps, separately for computing and communication, and the speed-ups that the learner computes from
them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Any

import own_part
import ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

WARM_UP_STEPS, STEPS, TOLERANCE = 3, 20, 1e-3  # relative
SLOW_S = 1000.0
"""A computing time that no rank really has."""
SAME = ("with its rows in reverse order", "with warm-up steps of 1,000 s", "with half of its computing as communication")
ALL_EQUAL, ONE_LATE = "with equal times of all ranks", "with a rank that computes 1,000 s longer in each step"
ONE_SLOW, TURNS = "with a last step of 1,000 s", "with another rank at 1,000 s in each step"

Training = dict[str, Any]
Batch = tuple[torch.Tensor, torch.Tensor]


def record(model: nn.Module, batches: Iterable[Batch], device: torch.device, rank: int) -> list[dict[str, float]]:
    """Train some steps from cold, and return a row for each: the seconds that this rank computed, and communicated.

    To measure both apart, a step waits during each all-reduce, so nothing overlaps.
    """
    waited_s: list[float] = []
    wait_for_device: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else _nothing

    def send_and_wait(_, bucket):  # torch compares annotations with types, and here they would be strings
        wait_for_device()
        start = time.perf_counter()
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        work.wait()
        wait_for_device()
        waited_s.append(time.perf_counter() - start)
        return work.get_future().then(lambda future: future.value()[0])

    if isinstance(model, DistributedDataParallel):
        model.register_comm_hook(None, send_and_wait)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    cycled_batches = itertools.cycle(list(itertools.islice(batches, WARM_UP_STEPS + STEPS)))
    rows = []
    for step, (x, y) in enumerate(itertools.islice(cycled_batches, WARM_UP_STEPS + STEPS)):
        waited_s.clear()
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        cross_entropy(model(x), y).backward()
        optimizer.step()
        wait_for_device()
        seconds = time.perf_counter() - start
        rows.append({"step": step, "rank": rank, "compute_s": seconds - sum(waited_s), "communicate_s": sum(waited_s)})
    return rows


def make_training(workers: int, batch: int, rows: Iterable[dict[str, float]]) -> Training:
    """Return the raw times of all ranks as my_speedup.py receives them."""
    return {"ranks": workers, "batch_per_rank": batch, "warm_up_steps": WARM_UP_STEPS, "rows": list(rows)}


def edit(training: Training) -> dict[str, Training]:
    """Return edited copies of a training run by name. Each edit has a known effect on the speed."""
    rows, warm_up, workers = training["rows"], training["warm_up_steps"], training["ranks"]
    last = max(row["step"] for row in rows)
    slow_times = {"compute_s": SLOW_S}
    edits = {
        SAME[0]: rows[::-1],
        SAME[1]: [row | (slow_times if row["step"] < warm_up else {}) for row in rows],
        SAME[2]: [
            row | {"compute_s": half_s, "communicate_s": half_s + row["communicate_s"]}
            for row in rows for half_s in [row["compute_s"] / 2]
        ],
        ONE_SLOW: [row | (slow_times if row["step"] == last else {}) for row in rows],
        TURNS: [row | (slow_times | {"communicate_s": 0.0} if row["rank"] == row["step"] % workers else {}) for row in rows],
    }  # fmt: skip
    return {name: training | {"rows": changed} for name, changed in edits.items()}


def edit_waits(training: Training) -> dict[str, tuple[Training, float]]:
    """Return edited copies of a training run by name, each with the percentage of a step that a rank waits for slower ones."""
    workers = training["ranks"]
    late = [row | {"compute_s": SLOW_S if row["rank"] == row["step"] % workers else 0.0} for row in training["rows"]]
    edits = {
        ALL_EQUAL: ([row | {"compute_s": 1.0, "communicate_s": 1.0} for row in training["rows"]], 0.0),
        ONE_LATE: ([row | {"communicate_s": 2 * SLOW_S - row["compute_s"]} for row in late], 50 * (workers - 1) / workers),
    }
    return {name: (training | {"rows": rows}, percent) for name, (rows, percent) in edits.items()}


def compare_all(_: ranks.World | None, alone: Training, together: dict[str, Training]) -> dict[str, dict[str, Any]]:
    """Return the learner's figures for each training: "speedup", "efficiency", and the samples per second of one rank ("alone")
    and of this training ("together"). Also return the last two for each edited copy. They are the speed-ups over a training run
    that processes one sample a second. "waiting" is what the learner's waiting returns for this training and for its own edited
    copies."""
    from my_speedup import compare, waiting

    second = {"step": 0, "rank": 0, "compute_s": 0.75, "communicate_s": 0.25}
    unit = {"ranks": 1, "batch_per_rank": 1, "warm_up_steps": 0, "rows": [second]}

    def list_speeds(training: Training) -> dict[str, float]:
        copies = {"": training} | edit(training)
        return {name: float(compare(unit, copy)[0]) for name, copy in copies.items()}

    answers = {}
    for case, training in together.items():
        speedup, efficiency = compare(alone, training)
        answers[case] = {"speedup": float(speedup), "efficiency": float(efficiency)}
        answers[case] |= {
            "alone": list_speeds(alone),
            "together": list_speeds(training),
            "waiting": {"": float(waiting(training))},
        }
        answers[case]["waiting"] |= {name: float(waiting(copy)) for name, (copy, _) in edit_waits(training).items()}
    return answers


def make_rows(outcome: own_part.Outcome, together: dict[str, Training]) -> list[dict[str, object]]:
    """Return a row for each training run with the learner's numbers."""
    answers = outcome.results[0] if outcome.state == "ran" else {}
    return [
        {"case": f"{case}, yours", "ranks": together[case]["ranks"], "batch_per_rank": together[case]["batch_per_rank"],
         "samples_per_s": answer["together"][""], "speedup": answer["speedup"], "efficiency_percent": answer["efficiency"],
         "waiting_percent": answer["waiting"][""]}
        for case, answer in answers.items()
    ]  # fmt: skip


def describe(outcome: own_part.Outcome, alone: Training, together: dict[str, Training]) -> str | None:
    """Return "right", or a sentence on the fault of the learner's numbers for this run. Return None if there are none."""
    if outcome.state != "ran":
        return outcome.text if outcome.state == "failed" else None
    for case, answer in outcome.results[0].items():
        for name, training, speeds in (("one worker", alone, answer["alone"]), (case, together[case], answer["together"])):
            if fault := find_fault(training, speeds):
                return f"{name}{fault}"
        speedup, rate_alone, rate = answer["speedup"], answer["alone"][""], answer["together"][""]
        if not abs(speedup * rate_alone / rate - 1) <= TOLERANCE:
            return f"{case}: your speed-up is {speedup:.3f}, but it is not the ratio of the speed-ups over a third training"
        if not abs(answer["efficiency"] / (100 * speedup / together[case]["ranks"]) - 1) <= TOLERANCE:
            efficiency = f"{answer['efficiency']:.1f} %"
            return f"{case}: your efficiency is {efficiency}, which does not match your speed-up of {speedup:.3f}"
        for name, (_, percent) in edit_waits(together[case]).items():
            if not abs(answer["waiting"][name] - percent) <= 100 * TOLERANCE:
                share = answer["waiting"][name]
                return f"{case}, {name}: your ranks wait for {share:.1f} % of a step, but should for {percent:.1f} %"
    return "right"


def find_fault(training: Training, speeds: dict[str, float]) -> str | None:
    """Return a sentence on the first edited copy that contradicts the learner's samples per second, or None."""
    samples, speed = training["ranks"] * training["batch_per_rank"], speeds[""]
    if not speed > 0:
        return f": your speed is {speed:.4g} samples a second"
    for name in SAME:
        if not abs(speeds[name] / speed - 1) <= TOLERANCE:
            return f", {name}: your speed is {speeds[name]:.4g} samples a second, but should still be {speed:.4g}"
    if not speeds[ONE_SLOW] > samples / (SLOW_S / STEPS / 2):
        return f", {ONE_SLOW}: your speed is {speeds[ONE_SLOW]:.4g} samples a second, but one slow step should hardly matter"
    if not abs(speeds[TURNS] / (samples / SLOW_S) - 1) <= TOLERANCE:
        return f", {TURNS}: your speed is {speeds[TURNS]:.4g} samples a second, but should be {samples / SLOW_S:.4g}"
    return None


def _nothing() -> None:
    """Return immediately: on a CPU, a call returns after its computation."""
