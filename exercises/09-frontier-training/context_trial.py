"""The measurements of 9.3 on one rank: attention with all keys gathered, and with your ring and your exchange."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import torch
from attention_blocks import (
    Messages,
    Shape,
    attend_block,
    attend_whole,
    block_gradients,
    count_pairs,
    cut_contiguous,
    cut_striped,
    gather_all,
    make_inputs,
)
from exchange import Exchange

SHARES: dict[str, Callable[[int, int, int], torch.Tensor]] = {"contiguous": cut_contiguous, "striped": cut_striped}
LARGE = 60.0  # scores reach about 300


class Case:
    """One attention: its inputs, the results of a single process, and the positions of this rank's tokens."""

    def __init__(self, world: Any, shape: Shape, causal: bool, cut: Callable[[int, int, int], torch.Tensor]) -> None:
        """Compute the whole attention on every rank, as the reference."""
        self.world, self.shape, self.causal = world, shape, causal
        self.positions = [
            read_positions(cut(shape.length, world.size, rank), shape.length, world.size) for rank in range(world.size)
        ]
        self.inputs = make_inputs(shape)
        leaves = [tensor.clone().requires_grad_() for tensor in self.inputs[:3]]
        out = attend_whole(*leaves, causal)
        out.backward(self.inputs[3])
        self.right = [out.detach(), *(leaf.grad for leaf in leaves)]

    def local(self) -> list[torch.Tensor]:
        """Return q, k, v and the output's gradient of this rank's tokens."""
        return [tensor[:, self.positions[self.world.rank]].contiguous() for tensor in self.inputs]

    def compare(self, results: list[Any]) -> list[float]:
        """Return the largest error of the output and of each gradient, relative to the largest element of the reference."""
        offs = []
        for name, result, right in zip(("output", "q", "k", "v"), results, self.right, strict=True):
            part = right[:, self.positions[self.world.rank]]
            if not isinstance(result, torch.Tensor) or result.shape != part.shape:
                form = list(result.shape) if isinstance(result, torch.Tensor) else type(result).__name__
                raise TypeError(f"{name} is {form}, not a tensor of the shape {list(part.shape)}")
            offs.append(float((result - part).abs().nan_to_num(nan=torch.inf).max() / right.abs().max()))
        return offs


def read_positions(positions: Any, length: int, ranks: int) -> torch.Tensor:
    """Return the positions of one rank. Raise TypeError or ValueError if they are not positions."""
    if not isinstance(positions, torch.Tensor) or positions.dtype != torch.int64 or positions.shape != (length // ranks,):
        raise TypeError(f"share returned no int64 tensor of {length // ranks} positions")
    if int(positions.min()) < 0 or int(positions.max()) >= length:
        raise ValueError(f"share returned a position outside 0 to {length - 1}")
    return positions


def describe(way: str, share: str, whose: str, offs: list[float], sent: dict[str, Any]) -> dict[str, Any]:
    """Return a row of one rank."""
    row = {"way": way, "share": share, "whose": whose, "output_off": offs[0], "gradient_off": max(offs[1:])}
    return row | sent


def list_gathered(world: Any, shape: Shape, causal: bool, names: list[str]) -> list[dict[str, Any]]:
    """Return a row for each share of the course among `names`: every rank gets all keys and values."""
    rows = []
    for name in names:
        if name in SHARES:
            case, messages = Case(world, shape, causal, SHARES[name]), Messages(world.rank, world.size)
            inputs = case.local()
            world.wait_for_all()
            start = time.perf_counter()
            out, gradients = gather_all(messages, inputs, case.positions, causal)
            sent = {"forward_bytes": messages.bytes, "all_bytes": None, "messages": messages.count,
                    "ms": 1e3 * (time.perf_counter() - start)}  # fmt: skip
            rows.append(describe("all keys gathered", name, "course", case.compare([out, *gradients]), sent))
    return rows


# --- in the processes of your parts --------------------------------------------------------------------------------------


def use_ring(world: Any, shape: list[int], causal: bool, names: list[str]) -> dict[str, Any]:
    """Return `rows`, `work` and `large_off` of your ring.

    `rows` and `work` (pairs of query and key) have an entry for each share. `large_off` is the error in float32 if scores
    reach 300.
    """
    torch.set_num_threads(1)
    part = importlib.import_module("my_ring_attention")
    cuts = {**SHARES, "zigzag": part.share}
    rows, work = [], {}
    for name in names:
        case, messages = Case(world, Shape(*shape), causal, cuts[name]), Messages(world.rank, world.size)
        computed: list[int] = []
        held: list[int] = []

        def block(*call: Any, messages: Messages = messages, computed: list[int] = computed, held: list[int] = held) -> Any:
            computed.append(call[0].shape[1] * call[1].shape[1])
            held.append(messages.count_alive())
            return attend_block(*call, causal)

        q, k, v, gradient = case.local()
        world.wait_for_all()
        start = time.perf_counter()
        out, lse = part.forward(q, k, v, case.positions, world.rank, causal, messages.send_on, block)
        forward_bytes = messages.bytes
        gradients = part.backward(
            gradient, q, k, v, out, lse, case.positions, world.rank, causal, messages.send_on,
            lambda gradient, saved, mine, theirs: block_gradients(gradient, saved, mine, theirs, causal),
        )  # fmt: skip
        sent = {"forward_bytes": forward_bytes, "all_bytes": messages.bytes, "messages": messages.count,
                "ms": 1e3 * (time.perf_counter() - start), "computed": sum(computed), "held_tensors": max(held, default=0),
                "needed": count_needed(case, causal)}  # fmt: skip
        rows.append(describe("ring", name, "yours", case.compare([out, *gradients]), sent))
        work[name] = count_pairs(case.positions[world.rank], case.shape.length, causal)
    return {"rows": rows, "work": work, "large_off": measure_large(world, Shape(*shape), part, causal)}


def count_needed(case: Case, causal: bool) -> int:
    """Return how many pairs this rank computes if it skips only the blocks in which no query sees a key."""
    mine = case.positions[case.world.rank]
    return sum(len(mine) * len(part) for part in case.positions if not causal or int(part.min()) <= int(mine.max()))


def measure_large(world: Any, shape: Shape, part: Any, causal: bool) -> float:
    """Return the relative error of your ring's output in float32 if scores reach 300; 1e9 if it is not finite."""
    positions = [cut_contiguous(shape.length, world.size, rank) for rank in range(world.size)]
    wide = make_inputs(shape, LARGE)
    right = attend_whole(*wide[:3], causal)[:, positions[world.rank]]
    q, k, v = (tensor.float()[:, positions[world.rank]].contiguous() for tensor in wide[:3])
    out, _ = part.forward(
        q, k, v, positions, world.rank, causal, Messages(world.rank, world.size).send_on,
        lambda *call: attend_block(*call, causal),
    )  # fmt: skip
    return min(1e9, float((out.double() - right).abs().nan_to_num(nan=1e9).max() / right.abs().max()))


def use_ulysses(world: Any, shape: list[int], causal: bool, names: list[str]) -> list[dict[str, Any]]:
    """Return a row of your Ulysses attention for each share of the course among `names`."""
    torch.set_num_threads(1)
    part = importlib.import_module("my_ulysses")
    rows = []
    for name in names:
        if name not in SHARES:
            continue
        case, exchange = Case(world, Shape(*shape), causal, SHARES[name]), Exchange(world.rank, world.size)
        calls = [0]

        def all_to_all(parts: Any, exchange: Exchange = exchange, calls: list[int] = calls) -> list[torch.Tensor]:
            calls[0] += 1
            parts = list(parts)
            if len(parts) != world.size or len({tuple(tensor.shape) for tensor in parts}) != 1:
                raise ValueError(f"all_to_all got {len(parts)} parts, not {world.size} of the same shape")
            ones = [1] * world.size
            return list(exchange(torch.stack(parts), ones, ones))

        *leaves, gradient = case.local()
        leaves = [leaf.requires_grad_() for leaf in leaves]
        world.wait_for_all()
        start = time.perf_counter()
        out = part.attention(*leaves, case.positions, all_to_all, lambda *call: attend_block(*call, causal))
        gradients = torch.autograd.grad(out, leaves, gradient, allow_unused=True)
        forward_bytes = sum(exchange.forward_bytes)
        sent = {"forward_bytes": forward_bytes, "all_bytes": forward_bytes + sum(exchange.backward_bytes),
                "messages": (calls[0] + len(exchange.backward_bytes)) * (world.size - 1),
                "ms": 1e3 * (time.perf_counter() - start), "exchanges": calls[0]}  # fmt: skip
        rows.append(describe("Ulysses", name, "yours", case.compare([out.detach(), *gradients]), sent))
    return rows
