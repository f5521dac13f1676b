"""Time the learner's ring and gloo's AllReduce alternately, on the same tensors, and count the messages of the ring.

`own_part` calls `measure` in separate processes, on CPUs: NCCL sends nothing to a rank that has not begun to receive.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import bench
import own_part
import ranks
import torch
import torch.distributed as dist

NO_ROW = dict.fromkeys(["ring_ms", "ring_p20_ms", "ring_p80_ms", "gloo_ms", "factor", "ring_wrong", "messages", "sent_bytes"])
PERIOD, BUDGET_S, MIN_CALLS, MAX_CALLS = 97, 0.2, 5, 50


def measure(world: ranks.World, sizes: list[int]) -> list[dict[str, float]]:
    """Return a row for each size in float32 elements: times of the slowest rank, wrong elements, messages and bytes sent.

    A tensor with fewer elements than ranks has no row, because it cannot be cut into one chunk for each rank.
    """
    messages = _count_messages()
    from my_ring import ring_all_reduce  # after the counting has begun: the part may import isend by name

    def ring(tensor: torch.Tensor) -> None:
        ring_all_reduce(tensor, world.rank, world.size)

    return [{"elements": size, **_measure_size(world, size, ring, messages)} for size in sizes if size >= world.size]


def describe(outcome: own_part.Outcome, world_size: int) -> str | None:
    """Return "right", or a sentence on the fault of the ring in this run. Return None if it is not written, or for one rank."""
    if outcome.state == "open" or world_size == 1:
        return None
    if outcome.state == "failed":
        return outcome.text
    messages = 2 * (world_size - 1)
    for row in outcome.results[0]:
        max_bytes = messages * 4 * -(-row["elements"] // world_size)  # every chunk as long as the longest
        if row["ring_wrong"]:
            return f"{row['ring_wrong']:,} wrong elements on a rank, in a tensor of {row['elements']:,}"
        if row["messages"] != messages or row["sent_bytes"] > max_bytes:
            summary = f"{row['messages']} messages of {row['sent_bytes']:,} bytes in all"
            limit = f"{messages}, of at most {max_bytes:,} bytes"
            return f"a rank sent {summary} for {row['elements']:,} elements; a ring sends {limit}"
    return "right"


def _measure_size(world: ranks.World, size: int, ring: Callable[[torch.Tensor], None], messages: list[int]) -> dict[str, float]:
    pattern = torch.arange(size, dtype=torch.int32).remainder_(PERIOD).float()
    tensor = pattern + (world.rank + 1)
    messages.clear()
    ring(tensor)
    wrong_sum = int((tensor != world.size * pattern + world.size * (world.size + 1) / 2).sum())  # all sums are exact in float32
    counts = [float(wrong_sum), float(len(messages)), float(sum(messages))]
    zeros = torch.zeros(size)  # both work in place: any other values would grow with each call
    ways: list[Callable[[torch.Tensor], Any]] = [ring, dist.all_reduce]
    estimate = max(world.slowest([_time(way, zeros) for way in ways for _ in range(2)]))
    calls = max(MIN_CALLS, min(MAX_CALLS, int(BUDGET_S / 2 / estimate)))
    seconds = world.slowest([_time(way, zeros) for _ in range(calls) for way in ways])
    times, library_times = bench.spread_ms(seconds[::2]), bench.spread_ms(seconds[1::2])
    maxima = [int(count) for count in world.slowest(counts)]
    return {
        "ring_ms": times["median_ms"], "ring_p20_ms": times["p20_ms"], "ring_p80_ms": times["p80_ms"],
        "gloo_ms": library_times["median_ms"], "factor": times["median_ms"] / library_times["median_ms"],
        "ring_wrong": maxima[0], "messages": maxima[1], "sent_bytes": maxima[2],
    }  # fmt: skip


def _time(call: Callable[[torch.Tensor], Any], tensor: torch.Tensor) -> float:
    dist.barrier()  # all ranks begin together
    start = time.perf_counter()
    call(tensor)
    return time.perf_counter() - start


def _count_messages() -> list[int]:
    """Return a list that gets the bytes of every message that this process sends from now on."""
    sizes: list[int] = []

    def count(send: Callable[..., Any]) -> Callable[..., Any]:
        def count_and_send(tensor: torch.Tensor, *arguments: Any, **settings: Any) -> Any:
            sizes.append(tensor.nbytes)
            return send(tensor, *arguments, **settings)

        return count_and_send

    for name in ("isend", "send"):
        counting = count(getattr(dist, name))
        for module in (dist, dist.distributed_c10d):
            setattr(module, name, counting)
    return sizes
