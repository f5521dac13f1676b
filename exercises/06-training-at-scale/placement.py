"""Train six unequal blocks with any of them recomputed, and measure activations and operations on a simulated device (6.1)."""

from __future__ import annotations

import itertools
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
from device_memory import SimulatedMemory
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformer import Block

WIDTH, HEADS, SEQUENCES, LENGTH, FACTORS = 32, 2, 4, 32, (8, 1, 4, 2, 6, 3)
ENDLESS, LIMIT = 1 << 40, 900_000  # bytes; the second is the room for activations
Row = dict[str, Any]


class _AtGradient(torch.autograd.Function):
    """Pass a tensor on, and call `report` when its gradient comes back."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, report: Callable[[], None]) -> torch.Tensor:
        ctx.report = report
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        ctx.report()
        return gradient, None


class _Recomputed(torch.autograd.Function):
    """Compute a block without keeping its activations, and compute it again in backward, like torch.utils.checkpoint."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, block: nn.Module, report: Callable[[], None]) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.block, ctx.report = block, report
        return block(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None, None]:
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.block(x)
        ctx.report()
        y.backward(gradient)
        return x.grad, None, None


def build() -> nn.ModuleList:
    """Return the blocks. Their MLPs are wide and narrow, so that they differ in activations and in operations."""
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block(WIDTH, HEADS) for _ in FACTORS)
    for block, factor in zip(blocks, FACTORS, strict=True):
        block.mlp.up, block.mlp.down = nn.Linear(WIDTH, factor * WIDTH), nn.Linear(factor * WIDTH, WIDTH)
    return blocks


def train(chosen: Sequence[int]) -> Row:
    """Take one step in which the chosen blocks are recomputed, and return its row.

    `stored` has the activations that forward leaves of each block, `peak` the most activations when the backward of a block
    begins, both in bytes. `operations` counts the whole step, `forward` each block's forward.
    """
    with SimulatedMemory(ENDLESS) as memory, FlopCounterMode(display=False) as counter:
        blocks = build()
        for weight in blocks.parameters():
            weight.grad = torch.zeros_like(weight)
        x = torch.randn(SEQUENCES, LENGTH, WIDTH, generator=torch.Generator().manual_seed(1)).requires_grad_()
        base, stored, moments, forward = memory.allocated(), [], [], []

        def note() -> None:
            moments.append(memory.allocated() - base)

        for number, block in enumerate(blocks):
            before, count = memory.allocated(), counter.get_total_flops()
            x = _Recomputed.apply(x, block, note) if number in chosen else _AtGradient.apply(block(x), note)
            stored.append(memory.allocated() - before)
            forward.append(counter.get_total_flops() - count)
        x.backward(torch.ones_like(x))
    gradient = 4 * x.numel()
    return {"chosen": list(chosen), "stored": stored, "peak": max(moments) - gradient, "forward": forward,
            "operations": counter.get_total_flops()}  # fmt: skip


def compare() -> tuple[list[Row], Row, str]:
    """Train with simple placements and with the learner's. Return their rows, the figures for the checks, and "no error".

    If my_placement.py fails, its row is missing, its figures are None, and the error replaces "no error".
    """
    plain, recomputed = train(()), train(range(len(FACTORS)))
    rows = [plain | {"placement": "no block"}, train(range(0, len(FACTORS), 2)) | {"placement": "every second block"},
            recomputed | {"placement": "every block"}]  # fmt: skip
    figures: Row = {"limit_bytes": LIMIT, "least": _find_least(plain), "peak_bytes": None, "operations": None}
    error = "no error"
    try:
        import my_placement

        chosen = my_placement.place(plain["stored"], recomputed["stored"], plain["forward"], LIMIT)
        yours = train([int(number) for number in chosen])
        rows.append(yours | {"placement": "yours"})
        figures |= {"peak_bytes": yours["peak"], "operations": yours["operations"]}
    except Exception as failure:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
        if not isinstance(failure, NotImplementedError):
            traceback.print_exc(file=sys.stdout)
        error = f"{type(failure).__name__}: {(str(failure).splitlines() or [''])[0][:200]}"
    for row in rows:
        row |= {"blocks": ", ".join(map(str, row["chosen"])) or "–", "limit": LIMIT, "fits": row["peak"] <= LIMIT}
    return rows, figures, error


def _find_least(plain: Row) -> int:
    """Return the fewest operations of a step that fits. The placements are trained, the cheapest first."""
    numbers = range(len(FACTORS))
    choices = [chosen for count in range(len(FACTORS) + 1) for chosen in itertools.combinations(numbers, count)]
    choices.sort(key=lambda chosen: sum(plain["forward"][number] for number in chosen))
    return next(row["operations"] for chosen in choices if (row := train(chosen))["peak"] <= LIMIT)
