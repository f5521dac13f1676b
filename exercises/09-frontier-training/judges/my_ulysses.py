"""Judge my_ulysses.py of 9.3 on 2 and 4 real ranks: output, gradients, and the number of exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from attention_blocks import Shape, attend_block, attend_whole, cut_contiguous, cut_striped, make_inputs
from exchange import Exchange

from gpucourse.judge import Part, Verdict, Way, plant_ways

TOLERANCE = 1e-9
WAYS = {
    "heads-mixed": Way(
        "rank {rank} returned values of other heads: heads that come back are joined in the order of the ranks",
        ("    return turn(out, 1, 0)", "    return turn(out, 1, 0).roll(1, 0)"),
    ),
    "positions-lost": Way(
        "contiguous shares are right, but striped ones are not: tokens are joined in the order of the ranks, so "
        "mask by the positions of "
        "all ranks in that order",
        ("order = torch.cat(positions)", "order = torch.arange(sum(map(len, positions)))"),
    ),
    "own-positions": Way(
        "the mask uses the positions of one rank for the tokens of all: join the positions of all ranks",
        ("order = torch.cat(positions)", "order = positions[0].repeat(ranks)"),
    ),
    "own-tokens-only": Way(
        "rank {rank} computed attention among its own tokens only, as if the sequence were shorter",
        ("    return turn(out, 1, 0)", "    tokens = len(positions[0])\n"
         "    parts = [block(*(x[:, at : at + tokens] for x in (q, k, v)), *[order[at : at + tokens]] * 2)[0]\n"
         "             for at in range(0, len(order), tokens)]\n"
         "    return turn(torch.cat(parts, 1), 1, 0)"),
    ),
    "keys-detached": Way(
        "the gradients of k and v are missing or 0: autograd must follow every exchange",
        ("    out, _ = block(q, k, v, order", "    out, _ = block(q, k.detach(), v.detach(), order"),
    ),
}  # fmt: skip


def judge(part: Part) -> None:
    """Judge the attention with and without a mask, for contiguous and striped shares."""
    torch.set_num_threads(1)
    attention = part.function("attention")
    cases = [(cut, causal) for causal in (False, True) for cut in (cut_contiguous, cut_striped)]
    for ranks in (2, 4):
        shape = Shape(8 * ranks, 8, 4, 8)
        results = part.on_ranks(ranks, lambda rank, size: [_run(attention, rank, size, *case) for case in cases])
        for at, (cut, causal) in enumerate(cases):
            case = f"{ranks} ranks, {cut.__name__[4:]}, {'with' if causal else 'without'} a causal mask"
            right = make_right(shape, causal)
            for rank in range(ranks):
                mine = results[rank][at]
                expected = [tensor[:, cut(shape.length, ranks, rank)] for tensor in right]
                if not _is_alike(mine["tensors"], expected):
                    _name_way(part, case, [[row["tensors"] for row in rows] for rows in results], rank, cases)
                if mine["exchanges"] != 4:
                    text = f"rank {rank} called all_to_all {mine['exchanges']} times: once for q, k, v and the result"
                    raise Verdict("failed", "other", text, case)
    part.note("output and gradients equal those of one process on 2 and 4 ranks, in four exchanges")


def make_right(shape: Shape, causal: bool) -> list[torch.Tensor]:
    """Return output and the three gradients of the whole sequence, of one process."""
    *leaves, gradient = (tensor.requires_grad_(place < 3) for place, tensor in enumerate(make_inputs(shape)))
    out = attend_whole(*leaves, causal)
    return [out.detach(), *torch.autograd.grad(out, leaves, gradient)]


def _run(attention: Any, rank: int, ranks: int, cut: Any, causal: bool) -> dict[str, Any]:
    shape = Shape(8 * ranks, 8, 4, 8)
    positions = [cut(shape.length, ranks, other) for other in range(ranks)]
    exchange, calls = Exchange(rank, ranks), [0]

    def all_to_all(parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        calls[0] += 1
        parts = list(parts)
        if len(parts) != ranks or len({tuple(tensor.shape) for tensor in parts}) != 1:
            text = f"all_to_all got {len(parts)} parts, not {ranks} of the same shape, one for each rank"
            raise Verdict("failed", "other", text, f"{ranks} ranks")
        return list(exchange(torch.stack(parts), [1] * ranks, [1] * ranks))

    *leaves, gradient = (tensor[:, positions[rank]].contiguous() for tensor in make_inputs(shape))
    leaves = [leaf.requires_grad_() for leaf in leaves]
    out = attention(*leaves, positions, all_to_all, lambda *call: attend_block(*call, causal))
    if not isinstance(out, torch.Tensor) or out.shape != leaves[0].shape:
        form = list(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise Verdict("failed", "no-answer" if out is None else "other", f"it returned {form}, not {list(leaves[0].shape)}")
    gradients = torch.autograd.grad(out, leaves, gradient, allow_unused=True) if out.requires_grad else [None] * 3
    filled = [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, gradients, strict=True)]
    return {"tensors": [out.detach(), *(each.clone() for each in filled)], "exchanges": calls[0]}


def _is_alike(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE) for one, other in zip(left, right, strict=True))


def _name_way(part: Part, case: str, results: list[Any], rank: int, cases: list[Any]) -> None:
    ways, ranks = list(plant_ways(WAYS, __file__)), len(results)

    def run_planted(number: int, size: int) -> list[list[Any]]:
        return [[_run(module.attention, number, size, *one)["tensors"] for one in cases] for _, module in ways]

    planted = part.on_ranks(ranks, run_planted)
    for index, (way, _) in enumerate(ways):
        if all(
            _is_alike(planted[number][index][at], results[number][at]) for number in range(ranks) for at in range(len(cases))
        ):
            raise part.wrong(way, case, rank=rank)
    raise Verdict("failed", "other", f"output or gradients of rank {rank} differ from those of one process", case)
