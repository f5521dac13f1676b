"""Train a small layer of experts on tokens of 16 kinds of unequal frequency, and measure the load of each expert."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

WIDTH, HIDDEN, EXPERTS, TOP, BATCH, KINDS = 32, 32, 8, 2, 512, 16
LEARNING_RATE = 3e-3
Gate = Callable[[torch.Tensor, int], tuple[torch.Tensor, torch.Tensor]]


class _SumOverRanks(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        total = tensor.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def sum_over_ranks(tensor: torch.Tensor) -> torch.Tensor:
    """Return the sum over all ranks. The gradient goes to this rank's own summand, unchanged: each rank has the whole loss."""
    total: torch.Tensor = _SumOverRanks.apply(tensor)
    return total


class _Data:
    """Tokens of 16 kinds. The second is half as frequent as the first, the third a third as frequent. Each has its own map."""

    def __init__(self) -> None:
        source = torch.Generator().manual_seed(0)
        self.centres = torch.randn(KINDS, WIDTH, generator=source) * 1.5
        self.frequency = 1.0 / torch.arange(1, KINDS + 1)
        self.maps = torch.randn(KINDS, WIDTH, WIDTH, generator=source) / WIDTH**0.5

    def draw(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the tokens of a step and their targets, the same on every rank."""
        source = torch.Generator().manual_seed(100 + step)
        kind = torch.multinomial(self.frequency, BATCH, replacement=True, generator=source)
        x = self.centres[kind] + 0.5 * torch.randn(BATCH, WIDTH, generator=source)
        return x, torch.einsum("bi,bij->bj", x, self.maps[kind]).tanh()


def train(
    rank: int, ranks: int, steps: int, way: str, functions: Any = None, *, weight: float = 0, speed: float = 0
) -> dict[str, Any]:
    """Return figures of the last quarter of the steps: the largest and smallest load in units of the mean, all loads, the loss.

    `functions` has `route`, `balance_loss` and `next_bias`; without them, tokens go to the experts in turn. Each rank computes
    its share of the tokens, and all ranks take the same step. With a `weight`, the balance loss is added; with a `speed`, the
    bias moves.
    """
    source = torch.Generator().manual_seed(1)
    up, down, router = (
        nn.Parameter(torch.randn(*shape, generator=source) / shape[-2] ** 0.5)
        for shape in ((EXPERTS, WIDTH, HIDDEN), (EXPERTS, HIDDEN, WIDTH), (WIDTH, EXPERTS))
    )
    data, bias, optimizer = _Data(), torch.zeros(EXPERTS), torch.optim.AdamW([up, down, router], lr=LEARNING_RATE)
    losses, loads, place = [], [], slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    for step in range(steps):
        x, target = (part[place] for part in data.draw(step))
        scores = x @ router
        if functions is None:
            chosen = (torch.arange(len(x))[:, None] * TOP + torch.arange(TOP)) % EXPERTS
            gates = torch.full_like(chosen, 1 / TOP, dtype=x.dtype)
        else:
            gates, chosen = functions.route(scores, bias, TOP)
        hidden = nn.functional.silu(torch.einsum("bw,ewh->beh", x, up))
        outputs = torch.einsum("beh,ehw->bew", hidden, down)
        output = (outputs.gather(1, chosen[..., None].expand(-1, -1, WIDTH)) * gates[..., None]).sum(1)
        error = ((output - target) ** 2).sum() / (BATCH * WIDTH)
        loss = error
        if weight:
            loss = loss + weight * functions.balance_loss(scores.softmax(-1), chosen, sum_over_ranks)
        optimizer.zero_grad()
        loss.backward()
        load = torch.bincount(chosen.flatten(), minlength=EXPERTS).float()
        values = [load, error.detach().view(1)]
        values += [
            torch.zeros_like(part).flatten() if part.grad is None else part.grad.flatten() for part in (up, down, router)
        ]
        total = torch.cat(values)
        if ranks > 1:
            dist.all_reduce(total)
        load, error_sum, *gradients = total.split([EXPERTS, 1, up.numel(), down.numel(), router.numel()])
        for part, gradient in zip((up, down, router), gradients, strict=True):
            part.grad = gradient.view_as(part)
        optimizer.step()
        if speed:
            bias = functions.next_bias(bias, load, speed)
        losses.append(float(error_sum))
        loads.append(load * EXPERTS / (BATCH * TOP))
    last = torch.stack(loads[-max(1, steps // 4) :])
    return {
        "way": way, "largest_load": float(last.amax(1).mean()), "smallest_load": float(last.amin(1).mean()),
        "loss": sum(losses[-len(last) :]) / len(last), "loads": last.mean(0).tolist(),
    }  # fmt: skip


def find_gate_faults(functions: Any, rank: int, ranks: int) -> dict[str, float]:
    """Return the errors of the learner's gate as `choice_off`, `weights_off` (with a bias) and `loss_off`; 0 is exact.

    The loss is compared with that of one process, and with two known cases: 1 if all experts are equally likely and
    equally often chosen, E if one expert has everything.
    """
    source = torch.Generator().manual_seed(5)
    scores = torch.randn(64, EXPERTS, generator=source, dtype=torch.float64)
    bias = torch.linspace(-0.3, 0.3, EXPERTS, dtype=torch.float64)
    place = slice(rank * 64 // ranks, (rank + 1) * 64 // ranks)
    weights, chosen = functions.route(scores[place], bias, TOP)
    preferred = scores[place].softmax(-1) + bias
    kept = torch.zeros_like(preferred, dtype=torch.bool).scatter(1, chosen, True)
    missed = preferred.masked_fill(kept, -math.inf).amax(-1) - preferred.masked_fill(~kept, math.inf).amin(-1)
    ratio = weights[:, 0].log() - weights[:, 1].log() - (scores[place].gather(1, chosen) * torch.tensor([1.0, -1.0])).sum(-1)
    even = torch.arange(EXPERTS).repeat(2).view(-1, TOP)
    flat, one = torch.full((EXPERTS, EXPERTS), 1 / EXPERTS).double(), torch.zeros(EXPERTS, EXPERTS).double()
    one[:, 0] = 1
    chosen_of_all = scores.topk(TOP, -1).indices
    losses = [
        float(functions.balance_loss(*case, sum_over_ranks))
        for case in ((flat, even), (one, torch.zeros(EXPERTS, 1, dtype=torch.int64)),
                     (scores[place].softmax(-1), chosen_of_all[place]))
    ]  # fmt: skip
    alone = float(functions.balance_loss(scores.softmax(-1), chosen_of_all, lambda tensor: tensor))
    return {
        "choice_off": max(0.0, float(missed.max())),
        "weights_off": max(float(ratio.abs().nan_to_num(math.inf).max()), float((weights.sum(-1) - 1).abs().max())),
        "loss_off": max(abs(loss - right) for loss, right in zip(losses, (1.0, float(EXPERTS), alone), strict=True)),
    }


def balance_with_yours(world: Any, steps: int, ways: list[str], weight: float, speed: float) -> dict[str, Any]:
    """Train in the given ways with my_gate.py. Return `faults` and a row for each way."""
    import my_gate

    torch.set_num_threads(1)
    faults = find_gate_faults(my_gate, world.rank, world.size)
    settings = {"none": {}, "loss": {"weight": weight}, "bias": {"speed": speed}}
    rows = [train(world.rank, world.size, steps, f"yours, {way}", my_gate, **settings[way]) for way in ways]
    return {"faults": faults, "rows": rows}
