"""The training of 3.9 with the layers of my_slices.py: one copy of the transformer, in as many slices as there are ranks."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

import bench
import torch
import torch.distributed as dist
from torch import nn
from transformer import Transformer, counting_text, parameter_bytes

if TYPE_CHECKING:
    from ranks import World

SEED, VOCABULARY, RATE, COLD_STEPS = 0, 64, 0.05, 3
CUTS = {"attention.qkv": "columns", "attention.out": "rows", "mlp.up": "columns", "mlp.down": "rows"}
COLLECTIVES = ("all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_single", "reduce_scatter", "broadcast",
               "reduce_scatter_tensor", "reduce_scatter_single", "all_to_all_single", "isend", "send", "reduce")  # fmt: skip


def make_model(length: int, width: int, heads: int, layers: int) -> Transformer:
    """Return a model that has the same first weights every time."""
    torch.manual_seed(SEED)
    return Transformer(VOCABULARY, length, width, heads, layers)


def make_text(samples: int, length: int) -> torch.Tensor:
    """Return the sequences of one step, which are always the same."""
    return counting_text(samples, length, VOCABULARY, torch.Generator().manual_seed(SEED))


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of every layout. It keeps one momentum value for each parameter."""
    return torch.optim.SGD(model.parameters(), lr=RATE, momentum=0.9, foreach=False)


def compute_loss(model: nn.Module, text: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of the predicted tokens."""
    return nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


class _Slice(nn.Module):
    """A Linear layer of which this rank has the part that `cut` returns."""

    def __init__(self, part: ModuleType, linear: nn.Linear, direction: str, world: World) -> None:
        super().__init__()
        self._multiply = {"columns": part.column_linear, "rows": part.row_linear}[direction]
        weight, bias = part.cut(linear.weight.detach(), linear.bias.detach(), direction, world.rank, world.size)
        self.weight, self.bias = (nn.Parameter(tensor.detach().clone().contiguous()) for tensor in (weight, bias))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._multiply(x, self.weight, self.bias)


def train(world: World, shape: list[int], samples: int, steps: int) -> dict[str, object]:
    """Train with the layers of my_slices.py. Return the row of this layout, with the loss of every step.

    `shape` has the length, the width, the heads and the layers of the transformer.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    messages = _count_messages()  # before my_slices.py can import a collective by name
    part = importlib.import_module("my_slices")
    model, text = make_model(*shape), make_text(samples, shape[0]).to(world.device)
    for block in model.blocks:
        for name, direction in CUTS.items():
            block.set_submodule(name, _Slice(part, block.get_submodule(name), direction, world))
    model.to(world.device)
    optimizer, losses, counts = make_optimizer(model), [], []

    def step() -> None:
        messages.clear()
        optimizer.zero_grad(set_to_none=True)
        loss = compute_loss(model, text)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        counts.append(len(messages))

    step_s = world.slowest(bench.time_each(step, world.device, steps)[COLD_STEPS:])
    size = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    right_size = parameter_bytes(VOCABULARY, shape[0], shape[1], shape[3], slices=world.size)
    return {
        "layout": "yours", "dp": 1, "tp": world.size, **bench.spread_ms(step_s), "parameter_bytes": size,
        "state_bytes": 3 * size, "bytes_off": abs(size - right_size), "tp_messages": counts[-1],
        "tp_message_bytes": 4 * samples * shape[0] * shape[1], "dp_message_bytes": 0, "losses": losses,
        "loss_after": losses[-1], "tokens_per_s": samples * shape[0] / bench.percentile(step_s, 50),
    }  # fmt: skip


def _count_messages() -> list[str]:
    """Return a list that gets the name of each collective that is called from now on."""
    messages: list[str] = []

    def watch(name: str, collective):
        def call(*arguments, **kwargs):
            messages.append(name)
            return collective(*arguments, **kwargs)

        return call

    for name in COLLECTIVES:
        if hasattr(dist, name):
            setattr(dist, name, watch(name, getattr(dist, name)))
    return messages
