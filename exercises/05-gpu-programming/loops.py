"""Test the training loop of 5.2: data, a model, the provided loop, and two ways to observe a loop.

`run_on_meta` runs a loop on torch's meta device, which has shapes but no data. If a tensor was not moved, or a value is read,
the run stops and reports the line. `watch` runs a loop for real and records how it treats gradients and formats.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from dispatch import Move, Operations
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.overrides import TorchFunctionMode

SEED, FEATURES, CLASSES, BATCHES, RATE, CLIP = 0, 64, 10, 8, 1e-3, 0.25
META_STEPS = 3
OTHER_DEVICE = ("not on the expected device", "on the same device", "Expected all tensors")
NO_DATA = ("meta tensor", "meta device", "Meta tensors", "torch.nonzero()", "Tensor.__format__")
BRANCHES = ("__bool__", "__contains__")
Train = Callable[..., Any]


def make_data(batch_size: int, batches: int = BATCHES) -> tuple[list[list[float]], list[int]]:
    """Return rows of numbers and their classes as Python lists. A network with random weights decides which class is right."""
    source = torch.Generator().manual_seed(SEED)
    inputs = torch.randn(batches * batch_size, FEATURES, generator=source)
    labels = (inputs @ torch.randn(FEATURES, CLASSES, generator=source)).argmax(dim=1)
    return inputs.tolist(), labels.tolist()


def make_model(width: int) -> nn.Module:
    """Return three linear layers on the CPU, with the same weights at every call."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))


def train_on_cpu(
    model: nn.Module, inputs: list[list[float]], labels: list[int], batch_size: int, *_: object, steps: int, clip: float = CLIP
) -> torch.Tensor:
    """Train with the provided loop, which is right on a CPU, and return the losses. Every other loop is compared with it."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    losses = []
    for step in range(steps):
        first = step * batch_size % len(inputs)
        x, y = torch.tensor(inputs[first : first + batch_size]), torch.tensor(labels[first : first + batch_size])
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def measure_training_bytes(width: int) -> int:
    """Return the bytes of parameters, gradients and the optimizer's state after one step of AdamW."""
    model = make_model(width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    model(torch.ones(1, FEATURES)).sum().backward()
    optimizer.step()
    tensors = [tensor for weight in model.parameters() for tensor in (weight, weight.grad)]
    tensors += [value for state in optimizer.state.values() for value in state.values()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def convert_losses(result: Any) -> torch.Tensor:
    """Convert the result of a loop to one float32 tensor on the CPU. Raises TypeError or ValueError if that fails."""
    if not isinstance(result, torch.Tensor):
        cure = ": torch.stack(losses) makes one of a list of losses" if isinstance(result, (list, tuple)) else ""
        raise TypeError(f"it returned {type(result).__name__}, not the losses as a tensor{cure}")
    if result.dim() != 1:
        raise ValueError(f"it returned a tensor of shape {tuple(result.shape)}, not one loss per step")
    return result.detach().float().cpu()


# --- on the meta device ------------------------------------------------------------------------------------------------


@dataclass
class MetaRun:
    """The outcome of a loop without data.

    `kind`: fine, stayed (nothing was moved), left (one tensor was not moved), looked (a value was read), branched or broken.
    The counts are per step, without the first step.
    """

    kind: str = "fine"
    says: str = "none"
    line: int | None = None
    moves: list[Move] = field(default_factory=list)
    built_from_python: float = 0.0
    error: Exception | None = None


class _LastCall(TorchFunctionMode):
    """Record the name of the last Python call to reach torch."""

    name = ""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.name = getattr(function, "__name__", "")
        return function(*args, **(kwargs or {}))


@contextmanager
def _autocast_without_a_device() -> Iterator[None]:
    """Let torch.autocast use the CPU's rules on the meta device. Torch does not support autocast there, and casts nothing."""
    plain = torch.autocast.__init__

    def begin(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        plain(self, "cpu" if device_type == "meta" else device_type, *args, **kwargs)

    torch.autocast.__init__ = begin
    try:
        yield
    finally:
        torch.autocast.__init__ = plain


def run_on_meta(train: Train) -> MetaRun:
    """Run three steps of `train` on the meta device, and return the outcome.

    The result contains the error of `train`, if any.
    """
    batch_size, model, device = 4, make_model(16), torch.device("meta")
    inputs, labels = make_data(batch_size, batches=2)
    operations, last, starts = Operations(), _LastCall(), []
    device_kinds: set[str] = set()

    def note_step(*_: object) -> None:
        starts.append((len(operations.moves), operations.from_python))

    model.register_forward_pre_hook(lambda _, result: device_kinds.update(tensor.device.type for tensor in result))
    hook = register_optimizer_step_pre_hook(note_step)
    try:
        with _autocast_without_a_device(), last, operations:
            result = train(model, inputs, labels, batch_size, device, META_STEPS, torch.float32)
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way
        return _explain(error, train, last.name)
    finally:
        hook.remove()
    if device_kinds != {"meta"} or (isinstance(result, torch.Tensor) and result.device.type != "meta"):
        kinds = ", ".join(sorted(device_kinds)) or "no device"
        return MetaRun("stayed", f"nothing was moved: device is meta, but the model computed on {kinds}")
    if not starts:
        return MetaRun("no-step", "the optimizer took no step")
    steady = max(1, len(starts) - 1)
    first, models = starts[0]
    return MetaRun(moves=operations.moves[first:], built_from_python=(operations.from_python - models) / steady)


def _explain(error: Exception, train: Train, last_call: str) -> MetaRun:
    frames = traceback.extract_tb(error.__traceback__)
    line_numbers = [frame.lineno for frame in frames if frame.filename == train.__code__.co_filename]
    text = (str(error).splitlines() or [""])[0][:200]
    if any(words in text for words in OTHER_DEVICE):
        kind = "left"
    elif any(words in text for words in NO_DATA):
        kind = "branched" if last_call in BRANCHES else "looked"
    else:
        kind = "broken"
    return MetaRun(kind, f"{type(error).__name__}: {text}", line_numbers[-1] if line_numbers else None, error=error)


# --- on a device with data -----------------------------------------------------------------------------------------------


@dataclass
class Observation:
    """Observations of a loop during its training.

    `gradient`: the norm of the first layer's gradient in the first step, after backward computed it.
    `gradient_at_step`: the norm of the same gradient when the optimizer used it.
    """

    losses: torch.Tensor
    operations: Operations
    moves: list[Move]  # after the first step
    half_percent: float
    parameters_float32: bool
    autocast_in_backward: bool
    gradient: float
    gradient_at_step: float
    keeps_graph: bool
    scalers: int  # gradient scalers that scaled a loss
    scaler_steps: int  # of these scalers
    weights: torch.Tensor  # all of them, at the end


def watch(train: Train, device: torch.device, dtype: torch.dtype, *, width: int, batch_size: int, steps: int) -> Observation:
    """Run `train` for a few steps, and return what was observed. Raises the errors of `train` and `convert_losses`."""
    model, data = make_model(width), make_data(batch_size)
    weight = next(model.parameters())
    norms: dict[str, torch.Tensor] = {}
    in_backward: list[bool] = []
    moves_before: list[int] = []

    def note_gradient(gradient: torch.Tensor) -> None:
        in_backward.append(torch.is_autocast_enabled(device.type))
        norms.setdefault("backward", gradient.detach().float().norm())

    def note_step(optimizer: Any, *_: object) -> None:
        moves_before.append(len(operations.moves))
        current = next(model.parameters()).grad
        if current is not None and "step" not in norms:
            scale = getattr(optimizer, "grad_scale", None)  # a fused optimizer divides by itself
            norms["step"] = current.detach().float().norm() / (1.0 if scale is None else scale)

    weight.register_hook(note_gradient)
    hook, operations = register_optimizer_step_pre_hook(note_step), Operations(train.__code__.co_filename)
    try:
        with operations, _collect_scalers() as (scalers, scaler_steps):
            result = train(model, *data, batch_size, device, steps, dtype)
    finally:
        hook.remove()
    return Observation(
        losses=convert_losses(result),
        operations=operations,
        moves=operations.moves[moves_before[0] if moves_before else 0 :],
        half_percent=100 * operations.half_flop / operations.flop if operations.flop else 0.0,
        parameters_float32=all(item.dtype is torch.float32 for item in model.parameters()),
        autocast_in_backward=any(in_backward),
        gradient=float(norms.get("backward", math.nan)),
        gradient_at_step=float(norms.get("step", math.nan)),
        keeps_graph=isinstance(result, torch.Tensor) and result.requires_grad,
        scalers=len(scalers),
        scaler_steps=len(scaler_steps),
        weights=join_weights(model),
    )


def join_weights(model: nn.Module) -> torch.Tensor:
    """Return all parameters of a model as one vector on the CPU."""
    return torch.cat([parameter.detach().flatten().float().cpu() for parameter in model.parameters()])


@contextmanager
def _collect_scalers() -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the scalers that scale a loss inside the `with`, each once, and each step's scaler. Disabled ones are left out."""
    plain_scale, plain_step, scalers, steps = torch.amp.GradScaler.scale, torch.amp.GradScaler.step, [], []

    def scale(self: Any, outputs: Any) -> Any:
        if self.is_enabled() and not any(scaler is self for scaler in scalers):
            scalers.append(self)
        return plain_scale(self, outputs)

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.is_enabled():
            steps.append(self)
        return plain_step(self, *args, **kwargs)

    torch.amp.GradScaler.scale, torch.amp.GradScaler.step = scale, step
    try:
        yield scalers, steps
    finally:
        torch.amp.GradScaler.scale, torch.amp.GradScaler.step = plain_scale, plain_step
