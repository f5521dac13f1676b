"""Perform rounds of messages on real ranks over gloo, count what each rank sends, and compare with the library's all-reduce."""

from __future__ import annotations

import time
import zlib
from fractions import Fraction
from typing import Any

import torch
import torch.distributed as dist
from algorithms import ALGORITHMS, ring
from rounds import Link, Rounds, check, clock, count, count_crossing, execute

REPEATS = 5
NUMBER_BYTES = 8  # int64: sums are exact in any order
VIRTUAL_BYTES = tuple(1 << power for power in (10, 14, 20, 24, 28))
FLAT_RANKS = (6, 8, 64, 128)


def perform(rounds: Rounds, tensor: torch.Tensor, rank: int, group: dist.ProcessGroup | None) -> tuple[int, int]:
    """Perform the rounds on this rank's `tensor`, in place. Return how many messages and bytes it has sent."""
    messages = sent_bytes = 0
    for number, planned in enumerate(rounds):
        requests, arriving = [], []
        for message in planned:
            if message.source == rank:
                requests.append(dist.isend(tensor[message.first : message.last].clone(), message.target, group, tag=number))
                messages, sent_bytes = messages + 1, sent_bytes + (message.last - message.first) * tensor.element_size()
            if message.target == rank:
                numbers = torch.empty(message.last - message.first, dtype=tensor.dtype)
                requests.append(dist.irecv(numbers, message.source, group, tag=number))
                arriving.append((message, numbers))
        for request in requests:
            request.wait()
        for message, numbers in arriving:
            place = slice(message.first, message.last)
            tensor[place] = tensor[place] + numbers if message.add else numbers
    return messages, sent_bytes


def measure(world: Any, name: str, rounds: Rounds, numbers: int, per_node: int, group: Any = None) -> dict[str, Any]:
    """Return a row: sums that differ from gloo's own, counts on the busiest rank, bytes between nodes, and the time.

    `crossing_times` are the bytes between nodes in units of the minimum of any all-reduce: 2(nodes - 1) times the tensor.
    """
    values = torch.arange(numbers) * (world.rank + 1) + world.rank
    right = values.clone()
    dist.all_reduce(right, group=group)
    seconds = []
    for _ in range(REPEATS):
        tensor = values.clone()
        dist.barrier(group=group)
        start = time.perf_counter()
        messages, sent_bytes = perform(rounds, tensor, world.rank, group)
        seconds.append(time.perf_counter() - start)
    everyone: list[Any] = [None] * world.size
    dist.all_gather_object(everyone, (int((tensor != right).sum()), messages, sent_bytes, seconds), group=group)
    wrong, all_messages, all_bytes, times = zip(*everyone, strict=True)
    planned, nodes = count(rounds, world.size), world.size // per_node
    crossing = count_crossing(rounds, per_node)
    return {
        "algorithm": name, "wrong": max(wrong), "rounds": planned.rounds, "messages": max(all_messages),
        "messages_off": max(abs(x - y) for x, y in zip(all_messages, planned.messages, strict=True)),
        "bytes": max(all_bytes), "by_formula_bytes": max(planned.numbers) * NUMBER_BYTES,
        "bytes_off": max(abs(x - y * NUMBER_BYTES) for x, y in zip(all_bytes, planned.numbers, strict=True)),
        "crossing_bytes": crossing * NUMBER_BYTES,
        "crossing_times": crossing / (2 * (nodes - 1) * numbers) if nodes > 1 else None,
        "median_ms": 1e3 * sorted(max(each) for each in zip(*times, strict=True))[REPEATS // 2],
    }  # fmt: skip


def count_wrong(rounds: Rounds, ranks: int, numbers: int) -> int:
    """Return how many numbers of virtual ranks are not the sum after the rounds."""
    values = [[(rank + 1) * (place + 1) for place in range(numbers)] for rank in range(ranks)]
    sums = [sum(column) for column in zip(*values, strict=True)]
    return sum(x != y for row in execute(rounds, values) for x, y in zip(row, sums, strict=True))


def make_links(cluster: dict[str, Any]) -> tuple[Link, Link]:
    """Return the links inside a node and between nodes. Their times are in seconds, per message and per number of 4 bytes."""
    inside = Link(cluster["inside_us"] * 1e-6, 4e-9 / cluster["inside_gb_per_s"])
    return inside, Link(cluster["latency_us"] * 1e-6, 4e-9 / cluster["gb_per_s"])


def time_virtual(name: str, make: Any, cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each size: the simulated time on the virtual cluster. `make(numbers)` returns the rounds."""
    inside, between = make_links(cluster)
    ranks, rows = cluster["nodes"] * cluster["per_node"], []
    for size in VIRTUAL_BYTES:
        rounds = check(make(size // 4), ranks, size // 4)
        seconds = clock(rounds, cluster["per_node"], inside, between, shared_card=cluster["shared_card"])
        rows.append({"bytes": size, "algorithm": name, "sim_us": 1e6 * float(seconds)})
    return rows


def find_crossover(ranks: int, latency_us: int) -> int:
    """Return the bytes from which the ring is faster than recursive doubling, on nodes of one GPU with links of 50 GB/s.

    The number is found by bisection on the simulated clock, to the next multiple of `ranks` numbers of 4 bytes.
    """
    link = Link(Fraction(latency_us, 10**6), Fraction(4, 50 * 10**9))
    low, high = 0, 1 << 24  # in chunks of a number for each rank
    while high - low > 1:
        middle = (low + high) // 2
        times = [clock(ALGORITHMS[name](ranks, middle * ranks), 1, link, link) for name in ("ring", "doubling")]
        low, high = (low, middle) if times[0] < times[1] else (middle, high)
    return high * ranks * 4


def find_ring_off() -> float:
    """Return the largest difference between the clock of a ring and 2(n-1) messages of a chunk, in latencies."""
    latency, per_number, off = Fraction(7), Fraction(1, 3), Fraction(0)
    for ranks in (2, 4, 8, 64):
        for chunk in (1, 960):
            formula = 2 * (ranks - 1) * (latency + chunk * per_number)
            link = Link(latency, per_number)
            off = max(off, abs(clock(ring(ranks, ranks * chunk), 1, link, link) - formula) / latency)
    return float(off)


def measure_yours(world: Any, numbers: int, per_node: int, cluster: dict[str, Any]) -> dict[str, Any]:
    """Perform and time the all-reduces of my_rounds.py. Return rows of `real` and `virtual`, and the times of halving on `flat`
    networks, for `choose_with_yours`."""
    from my_rounds import halving_doubling, hierarchical

    nodes, ranks = world.size // per_node, cluster["nodes"] * cluster["per_node"]
    parts = {
        "yours, halving": (lambda count, n: halving_doubling(n, count), world.size, ranks),
        "yours, two levels": (
            lambda count, shape: hierarchical(*shape, count), (nodes, per_node), (cluster["nodes"], cluster["per_node"]),
        ),
    }  # fmt: skip
    real, virtual, wrong = [], [], 0
    for name, (make, here, there) in parts.items():
        rounds = check(make(numbers, here), world.size, numbers)
        others = world.gather(zlib.crc32(repr(rounds).encode()))  # ranks with different rounds would wait for ever
        if len(set(others)) > 1:
            rank = next(rank for rank, other in enumerate(others) if other != others[0])
            raise ValueError(f"{name}: rank {rank} has different rounds from rank 0; rounds may depend on the arguments only")
        real.append(measure(world, name, rounds, numbers, per_node))
        if world.rank == 0:
            wrong += count_wrong(check(make(2 * ranks + 1, there), ranks, 2 * ranks + 1), ranks, 2 * ranks + 1)
            virtual += time_virtual(name, lambda count, make=make, there=there: make(count, there), cluster)
    flat = list_flat(cluster, {"halving": halving_doubling}) if world.rank == 0 else []
    return {"real": real, "virtual": virtual, "virtual_wrong": wrong, "flat": flat}


def list_flat(cluster: dict[str, Any], algorithms: dict[str, Any]) -> list[dict[str, Any]]:
    """Return rows {ranks, bytes, algorithm, s} of simulated times, with one rank in each node.

    Doubling and halving have no row if the number of ranks is not a power of two.
    """
    _, link = make_links(cluster)
    rows = []
    for ranks in FLAT_RANKS:
        for size in VIRTUAL_BYTES:
            size_bytes = size // (4 * ranks) * 4 * ranks or 4 * ranks  # chunks of equal lengths
            for name, make in algorithms.items():
                if name in ("doubling", "halving") and ranks & (ranks - 1):
                    continue
                rounds = check(make(ranks, size_bytes // 4), ranks, size_bytes // 4)
                rows.append({"ranks": ranks, "bytes": size_bytes, "algorithm": name, "s": float(clock(rounds, 1, link, link))})
    return rows


def choose_with_yours(world: Any, cluster: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: ARG001
    """Compare my_seconds.py with the clock's `rows`. Return the largest difference (a share) and the share of right choices."""
    from my_seconds import choose, seconds

    latency_s, bytes_per_s = cluster["latency_us"] * 1e-6, cluster["gb_per_s"] * 1e9
    off, cases = 0.0, {}
    for row in rows:
        formula = float(seconds(row["algorithm"], row["ranks"], row["bytes"], latency_s, bytes_per_s))
        off = max(off, abs(formula / row["s"] - 1))
        cases.setdefault((row["ranks"], row["bytes"]), {})[row["algorithm"]] = row["s"]
    right, chosen = 0, []
    for (ranks, size_bytes), times in cases.items():
        offered = sorted({row["algorithm"] for row in rows})
        name = str(choose(offered, ranks, size_bytes, latency_s, bytes_per_s))
        right += times.get(name, float("inf")) <= min(times.values()) * (1 + 1e-9)
        chosen.append({"ranks": ranks, "bytes": size_bytes, "yours": name, "fastest": min(times, key=times.__getitem__)})
    return {"formula_off": off, "chosen_best": right / len(cases), "chosen": chosen}
