"""Record in which order torch's FSDP2 issues gathers, computing and reduces, on real ranks.

The recorder wraps methods of torch's FSDPParamGroup, which are private. If they are missing, it says so and records nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from fsdp_clock import BACKWARD, FORWARD, FREE, GATHER, REDUCE, Issue
from gpu_times import Gpus, measure_trace, trace_step
from torch import nn

SEED, WIDTH, ROWS = 0, 32, 8
PRIVATE = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
METHODS = "unshard", "reshard", "post_backward"


class Layer(nn.Module):
    """A layer of the recorded model."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x and what the layer adds to it."""
        return x + self.down(torch.tanh(self.up(x)))


class Net(nn.Module):
    """A stack of layers. Each is sharded on its own."""

    def __init__(self, layers: int, width: int = WIDTH) -> None:
        super().__init__()
        torch.manual_seed(SEED)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, 1)

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


class _Recorder:
    """Wrappers of the methods of FSDPParamGroup, which add to `issues` what happens to these layers."""

    def __init__(self, group: type[Any], layers: list[nn.Module]) -> None:
        self.issues: list[Issue] = []
        self._numbers = {id(layer): number for number, layer in enumerate(layers)}
        self._originals = {name: getattr(group, name) for name in METHODS}
        self._group, self._layers = group, layers

    def _note(self, kind: str, param_group: Any) -> None:
        number = self._numbers.get(id(param_group.modules[0]))
        if number is not None:
            self.issues.append((kind, number))

    def unshard(self, param_group: Any, *arguments: Any) -> Any:
        """Note a gather, unless the layer is whole or its gather is on the way."""
        if not param_group.is_unsharded and param_group._all_gather_result is None:  # noqa: SLF001
            self._note(GATHER, param_group)
        return self._originals["unshard"](param_group, *arguments)

    def reshard(self, param_group: Any) -> Any:
        """Note that a layer is freed, if it was whole."""
        was_whole = param_group.is_unsharded
        result = self._originals["reshard"](param_group)
        if was_whole and not param_group.is_unsharded:
            self._note(FREE, param_group)
        return result

    def post_backward(self, param_group: Any, *arguments: Any) -> Any:
        """Record the backward pass of a layer, and its reduce."""
        self._note(BACKWARD, param_group)
        result = self._originals["post_backward"](param_group, *arguments)
        self._note(REDUCE, param_group)
        return result

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Record issues while the block runs."""
        hooks = [layer.up.register_forward_hook(lambda *_, number=number: self.issues.append((FORWARD, number)))  # type: ignore[union-attr,operator]
                 for number, layer in enumerate(self._layers)]  # fmt: skip
        for name in METHODS:
            method = getattr(self, name)
            setattr(
                self._group, name, lambda group, *arguments, method=method, **keywords: method(group, *arguments, **keywords)
            )
        try:
            yield
        finally:
            for name, method in self._originals.items():
                setattr(self._group, name, method)
            for hook in hooks:
                hook.remove()


def shard(model: Net, mesh: Any, way: tuple[int, int, bool]) -> Net:
    """Return the model with its layers sharded by FSDP2, and with the gathers ahead and the frees of `way`."""
    from torch.distributed.fsdp import fully_shard

    warnings.filterwarnings("ignore", message="FSDP2-wrapped module")
    ahead_forward, ahead_backward, frees = way
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
    return model


def trace(gpus: Gpus | None, layers: int, width: int, way: tuple[int, int, bool]) -> dict[str, Any]:
    """Return the dictionary of `gpu_times.measure_trace` for the profiler's trace of one step of FSDP2 on GPUs.

    Without GPUs, each value is None. A step has twice as many rows as a layer is wide.
    """
    from torch.distributed.device_mesh import DeviceMesh

    if gpus is None:
        return measure_trace(())
    mesh = DeviceMesh.from_group(gpus.group, gpus.device.type)
    model = shard(Net(layers, width).to(gpus.device), mesh, way)
    x = torch.randn(2 * width, width, device=gpus.device)

    def step() -> None:
        model.zero_grad()
        model(x).pow(2).mean().backward()

    for _ in range(3):  # cold steps; in the first, torch learns the order of the layers
        step()
    return measure_trace(trace_step(step))


def record(layers: int, ranks: int, rank: int, way: tuple[int, int, bool]) -> tuple[list[Issue], float]:
    """Return the issues of one step of FSDP2 on `ranks` ranks, and the difference of its loss from that of one process.

    The first step is not recorded: in it, torch learns the order of the layers. Raises RuntimeError if this torch has other
    private parts.
    """
    from torch.distributed.device_mesh import init_device_mesh

    group = find_private_parts()
    if group is None:
        raise RuntimeError(f"torch {torch.__version__} has no {PRIVATE} with {', '.join(METHODS)}: nothing can be recorded")
    model, alone = shard(Net(layers), init_device_mesh("cpu", (ranks,)), way), Net(layers)
    x = torch.randn(ranks, ROWS, WIDTH, generator=torch.Generator().manual_seed(SEED))
    recorder = _Recorder(group, [*model.layers])
    loss = torch.zeros(())
    for step in range(2):
        model.zero_grad()
        with recorder.recording():
            loss = model(x[rank]).pow(2).mean()
            loss.backward()
        if step == 0:
            recorder.issues.clear()
    right = alone(x[rank]).pow(2).mean()
    return recorder.issues, abs(loss.item() / right.item() - 1)
