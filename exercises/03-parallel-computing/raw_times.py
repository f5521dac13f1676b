"""Raw times of training steps, computing and communication apart, and the speed-ups that the learner computes from them."""

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

Training = dict[str, Any]
Batch = tuple[torch.Tensor, torch.Tensor]


def record(model: nn.Module, batches: Iterable[Batch], device: torch.device, rank: int) -> list[dict[str, float]]:
    """Train some steps from cold, and return a row for each: the seconds that this rank computed, and communicated.

    To measure both apart, a step waits during each all-reduce, so nothing overlaps.
    """
    waited_s: list[float] = []
    wait_for_device: Callable[[], None] = torch.cuda.synchronize if device.type == "cuda" else _nothing

    def send_and_wait(_, bucket):  # torch compares annotations with types, and here they would be texts
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


def compare_all(_: ranks.World | None, alone: Training, together: dict[str, Training]) -> dict[str, list[float]]:
    """Return what the learner's compare returns for each training: speed-up, efficiency, and the samples per second of one
    rank and of this training. For the latter two, a training of one sample a second is compared with them."""
    from my_speedup import compare

    second = {"step": 0, "rank": 0, "compute_s": 0.75, "communicate_s": 0.25}
    unit = {"ranks": 1, "batch_per_rank": 1, "warm_up_steps": 0, "rows": [second]}
    answers = {}
    for case, training in together.items():
        speedup, efficiency = compare(alone, training)
        answers[case] = [float(speedup), float(efficiency), *(float(compare(unit, other)[0]) for other in (alone, training))]
    return answers


def make_rows(outcome: own_part.Outcome, together: dict[str, Training]) -> list[dict[str, object]]:
    """Return a row for each training with the learner's numbers."""
    answers = outcome.results[0] if outcome.state == "ran" else {}
    return [
        {"case": f"{case}, yours", "ranks": together[case]["ranks"], "batch_per_rank": together[case]["batch_per_rank"],
         "samples_per_s": rate, "speedup": speedup, "efficiency_percent": efficiency}
        for case, (speedup, efficiency, _, rate) in answers.items()
    ]  # fmt: skip


def describe(outcome: own_part.Outcome, alone: Training, together: dict[str, Training]) -> str | None:
    """Return "right", or what is wrong with the learner's numbers for this run. Return None if there are none."""
    if outcome.state != "ran":
        return outcome.text if outcome.state == "failed" else None
    for case, (speedup, efficiency, rate_alone, rate) in outcome.results[0].items():
        for name, training, speed in (("one worker", alone, rate_alone), (case, together[case], rate)):
            if fault := find_fault(training, speed):
                return f"{name}: {fault}"
        if not abs(speedup * rate_alone / rate - 1) <= TOLERANCE:
            return (
                f"{case}: your speed-up is {speedup:.3f}, but compared with another training these two differ by another factor"
            )
        if not abs(efficiency / (100 * speedup / together[case]["ranks"]) - 1) <= TOLERANCE:
            return f"{case}: your efficiency is {efficiency:.1f} %, which does not belong to your speed-up of {speedup:.3f}"
    return "right"


def find_fault(training: Training, samples_per_s: float) -> str | None:
    """Return what contradicts a speed, or None. The step of this speed is in the middle: at most half of the steps that count
    took longer, and at most half took less."""
    if not samples_per_s > 0:
        return f"your speed is {samples_per_s:.4g} samples a second"
    step_s = training["ranks"] * training["batch_per_rank"] / samples_per_s
    durations = [
        (row["step"], row["compute_s"] + row["communicate_s"])
        for row in training["rows"]
        if row["step"] >= training["warm_up_steps"]
    ]
    steps = {step for step, _ in durations}
    longer = {step for step, seconds in durations if seconds > step_s * (1 + TOLERANCE)}
    shorter = steps - {step for step, seconds in durations if seconds >= step_s * (1 - TOLERANCE)}
    for word, count in (("longer", len(longer)), ("less", len(shorter))):
        if 2 * count > len(steps):
            return f"by your speed a step takes {1e3 * step_s:.2f} ms, but {count} of the {len(steps)} that count took {word}"
    return None


def _nothing() -> None:
    """Return at once: on a CPU, a call returns after its computation."""
