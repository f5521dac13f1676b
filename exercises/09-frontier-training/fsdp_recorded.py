"""Record in which order torch's FSDP2 issues gathers, computing and reduces, on real ranks.

The recorder wraps methods of torch's FSDPParamGroup, which are private. Without them it says so and records nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from fsdp_clock import BACKWARD, FORWARD, FREE, GATHER, REDUCE, Issue
from torch import nn

SEED, WIDTH, ROWS = 0, 32, 8
WAYS = {
    "torch's default": (0, 1, True),
    "1 ahead in forward": (1, 1, True),
    "2 ahead in forward": (2, 1, True),
    "2 ahead in backward": (0, 2, True),
    "whole after forward": (0, 1, False),
}
"""Layers that are gathered ahead, in forward and in backward, and whether layers are freed after forward."""
PRIVATE = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
METHODS = "unshard", "reshard", "post_backward"


class Layer(nn.Module):
    """A layer of the recorded model."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and what the layer adds to it."""
        return x + self.down(torch.tanh(self.up(x)))


class Net(nn.Module):
    """A stack of layers. Each is sharded on its own."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return one number for each row."""
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def find_private_parts() -> type[Any] | None:
    """Return torch's class with the methods that are recorded, or None if this torch has no such class."""
    try:
        group: type[Any] = importlib.import_module(PRIVATE).FSDPParamGroup
    except (ImportError, AttributeError):
        return None
    return group if all(hasattr(group, name) for name in (*METHODS, "is_unsharded")) else None


@contextlib.contextmanager
def _recording(group: type[Any], layers: list[nn.Module], issues: list[Issue]) -> Iterator[None]:
    """Add to `issues` what FSDP2 does to these layers within the block."""
    numbers = {id(layer): number for number, layer in enumerate(layers)}
    originals = {name: getattr(group, name) for name in METHODS}

    def find_layer(param_group: Any) -> int | None:
        return numbers.get(id(param_group.modules[0]))

    def unshard(self: Any, *arguments: Any, **keywords: Any) -> Any:
        is_there = self.is_unsharded or self._all_gather_result is not None
        if not is_there and (layer := find_layer(self)) is not None:
            issues.append((GATHER, layer))
        return originals["unshard"](self, *arguments, **keywords)

    def reshard(self: Any, *arguments: Any, **keywords: Any) -> Any:
        was_whole = self.is_unsharded
        result = originals["reshard"](self, *arguments, **keywords)
        if was_whole and not self.is_unsharded and (layer := find_layer(self)) is not None:
            issues.append((FREE, layer))
        return result

    def post_backward(self: Any, *arguments: Any, **keywords: Any) -> Any:
        layer = find_layer(self)
        if layer is not None:
            issues.append((BACKWARD, layer))
        result = originals["post_backward"](self, *arguments, **keywords)
        if layer is not None:
            issues.append((REDUCE, layer))
        return result

    hooks = [layer.up.register_forward_hook(lambda *_, number=number: issues.append((FORWARD, number)))
             for number, layer in enumerate(layers)]  # fmt: skip
    for name, method in (("unshard", unshard), ("reshard", reshard), ("post_backward", post_backward)):
        setattr(group, name, method)
    try:
        yield
    finally:
        for name, method in originals.items():
            setattr(group, name, method)
        for hook in hooks:
            hook.remove()


def record(layers: int, ranks: int, rank: int, way: tuple[int, int, bool]) -> tuple[list[Issue], float]:
    """Return the issues of one step of FSDP2 on `ranks` ranks, and how far its loss is from that of one process.

    The first step is not recorded: in it, torch learns the order of the layers. Raises RuntimeError if this torch has other
    private parts.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    group = find_private_parts()
    if group is None:
        raise RuntimeError(f"torch {torch.__version__} has no {PRIVATE} with {', '.join(METHODS)}: nothing can be recorded")
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    ahead_forward, ahead_backward, frees = way
    model, mesh = Net(layers), init_device_mesh("cpu", (ranks,))
    alone = Net(layers)
    blocks = list(model.layers)
    for block in blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=frees)
    fully_shard(model, mesh=mesh)
    for number, block in enumerate(blocks):
        if ahead_forward:
            block.set_modules_to_forward_prefetch(blocks[number + 1 : number + 1 + ahead_forward])  # type: ignore[operator]
        if ahead_backward > 1:
            earlier = blocks[max(0, number - ahead_backward) : number][::-1]
            block.set_modules_to_backward_prefetch(earlier)  # type: ignore[operator]
    x = torch.randn(ranks, ROWS, WIDTH, generator=torch.Generator().manual_seed(SEED))
    issues: list[Issue] = []
    loss = torch.zeros(())
    for step in range(2):
        model.zero_grad()
        with _recording(group, blocks, issues):
            loss = model(x[rank]).pow(2).mean()
            loss.backward()
        if step == 0:
            issues.clear()
    right = alone(x[rank]).pow(2).mean()
    return issues, abs(loss.item() / right.item() - 1)
