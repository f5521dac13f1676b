"""Train the model of 6.1 with each technique that saves memory, and measure the memory.

`train` takes one step with the changes of a technique in the menu. `measure` runs some steps of any training function, and
returns memory by stage, operations, time and losses.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from transformer import Transformer, counting_text

MIB = 1 << 20
VOCABULARY, RATE, SEED = 512, 1e-3, 0
PRODUCTS = {torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm, torch.ops.aten.baddbmm}


@dataclass(frozen=True)
class Shape:
    """A model and its batch: layers, width, length of a sequence, sequences in a batch."""

    layers: int
    width: int
    length: int
    batch: int
    vocabulary: int = VOCABULARY

    @property
    def heads(self) -> int:
        """Return the number of heads: of 64 numbers each if the width is a multiple of 64, otherwise of 32 or fewer."""
        return max(1, self.width // (64 if self.width % 64 == 0 and self.width > 128 else 32))

    def make_model(self, device: torch.device) -> Transformer:
        """Return a model on its device, with the same weights at every call."""
        torch.manual_seed(SEED)
        with device:
            return Transformer(self.vocabulary, self.length, self.width, self.heads, self.layers)

    def make_batch(self, number: int) -> torch.Tensor:
        """Return the sequences of step `number`, (batch, length + 1) tokens, in the processor's memory."""
        return counting_text(self.batch, self.length, self.vocabulary, torch.Generator().manual_seed(number))


@dataclass(frozen=True)
class Technique:
    """The changes of one row of the menu.

    `every`: one of this many blocks is checkpointed (0: none). `parts`: the batch is divided into this many micro-batches.
    `half`: matrix products are in 16 bits. `foreach`: the optimizer updates all tensors in one call.
    """

    name: str
    every: int = 0
    parts: int = 1
    half: bool = False
    optimizer: str = "AdamW"
    foreach: bool = True

    @property
    def same_training(self) -> bool:
        """Return whether the losses equal those of the plain step, except for the order of sums."""
        return not self.half and self.optimizer == "AdamW"


LONG = Shape(layers=2, width=64, length=1024, batch=1, vocabulary=4096)
"""One long sequence and a large vocabulary: most of the memory is scores."""
PLAIN = Technique("plain step")
MENU = (
    PLAIN,
    Technique("checkpoint every block", every=1),
    Technique("checkpoint every 2nd block", every=2),
    Technique("4 micro-batches", parts=4),
    Technique("16 micro-batches", parts=16),
    Technique("16-bit autocast", half=True),
    Technique("checkpoint, 4 micro-batches", every=1, parts=4),
    Technique("checkpoint, 16 micro-batches", every=1, parts=16),
    Technique("... and AdamW tensor by tensor", every=1, parts=16, foreach=False),
    Technique("... and SGD instead of AdamW", every=1, parts=16, foreach=False, optimizer="SGD"),
)


def make_optimizer(model: nn.Module, technique: Technique = PLAIN) -> torch.optim.Optimizer:
    """Return AdamW, or plain SGD without moments if the technique says so.

    AdamW updates all tensors in one call, as on a GPU, unless the technique says otherwise.
    """
    if technique.optimizer == "SGD":
        return torch.optim.SGD(model.parameters(), lr=50 * RATE, foreach=technique.foreach)
    return torch.optim.AdamW(model.parameters(), lr=RATE, eps=1e-6, foreach=technique.foreach)


def half_type(device: torch.device) -> torch.dtype:
    """Return bfloat16 if the device supports it, as CPUs and GPUs from compute capability 8.0 on do, else float16."""
    old = device.type == "cuda" and torch.cuda.get_device_capability(device) < (8, 0)
    return torch.float16 if old else torch.bfloat16


def forward(model: Transformer, tokens: torch.Tensor, interval: int) -> torch.Tensor:
    """Return the scores. One of `interval` blocks keeps only its input, and is recomputed in backward."""
    x = model.token(tokens) + model.place
    for place, block in enumerate(model.blocks):
        is_checkpointed = interval and place % interval == 0
        x = checkpoint(block, x, use_reentrant=False) if is_checkpointed else block(x)
    return model.scores(model.norm(x))


def train(
    technique: Technique,
    model: Transformer,
    batch: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    device: torch.device,
    enter: Callable[[str], None] = lambda _stage: None,
) -> torch.Tensor:
    """Take one step on one batch, and return its mean loss over all tokens. `enter` is called at the start of each stage.

    The batch must divide into equal parts.
    """
    optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    parts = batch.to(device).chunk(technique.parts)
    for part in parts:
        enter("forward")
        with torch.autocast(device.type, half_type(device), enabled=technique.half):
            scores = forward(model, part[:, :-1], technique.every)
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[:, 1:].flatten())
        del scores
        enter("backward")
        share = loss / len(parts)
        share.backward()
        total += share.detach()
    enter("optimizer")
    optimizer.step()
    enter("end")
    return total


def tensors_held(model: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """Yield the tensors that training holds before the optimizer steps: weights, gradients, and optimizer state, for each
    weight."""
    for parameter in model.parameters():
        yield parameter
        if parameter.grad is not None:
            yield parameter.grad
        yield from (value for value in optimizer.state[parameter].values() if torch.is_tensor(value) and value.dim())


@dataclass
class Measurement:
    """Measurements of some steps of one technique. Sizes are in bytes. If memory ran out, only `error` is set."""

    error: str | None = None
    peak: int | None = None
    stages: dict[str, int] = field(default_factory=dict)
    held: int | None = None
    flops: int | None = None
    seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    weights: list[torch.Tensor] = field(default_factory=list)
    calls: int = 0


def measure(
    step: Callable[..., Any],
    shape: Shape,
    steps: int,
    memory: Any,
    device: torch.device,
    technique: Technique = PLAIN,
) -> Measurement:
    """Run `steps` steps (at least 2) of `step(model, batch, optimizer, device, enter)` on the device with that `memory`.

    In the first step, operations are counted and the optimizer creates its moments. Peaks and times are from later steps.
    """
    measurement = Measurement()
    try:
        with memory:
            _run(step, shape, steps, memory, device, technique, measurement)
    except torch.OutOfMemoryError as error:
        measurement = Measurement(error=str(error).splitlines()[0])
    gc.collect()  # what the error's frames held
    memory.empty_cache()
    return measurement


def find_reference(results: Sequence[tuple[Technique, Measurement]]) -> tuple[Technique, Measurement] | None:
    """Return the first result that fitted and trains as the plain step does, or None."""
    return next((result for result in results if result[0].same_training and not result[1].error), None)


def drop_weights(results: Sequence[tuple[Technique, Measurement]]) -> None:
    """Drop the final weights of all training runs except the reference's.

    A copy of a GPU's model takes gigabytes of the node's memory.
    """
    reference = find_reference(results)
    for result in results:
        if result is not reference:
            result[1].weights.clear()


def _run(
    step: Callable[..., Any],
    shape: Shape,
    steps: int,
    memory: Any,
    device: torch.device,
    technique: Technique,
    measurement: Measurement,
) -> None:
    model = shape.make_model(device)
    optimizer = make_optimizer(model, technique)
    watch = Watch(memory)
    hook = model.token.register_forward_hook(watch.count)
    for number in range(steps):
        batch = shape.make_batch(number)
        if number == 0:
            with Products() as products:
                loss = step(model, batch, optimizer, device, watch.enter)
            measurement.flops = products.flops
            watch.begin()
        else:
            start = time.perf_counter()
            loss = step(model, batch, optimizer, device, watch.enter)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            measurement.seconds.append(time.perf_counter() - start)
        measurement.losses.append(float(loss))
    watch.enter("end")
    hook.remove()
    measurement.stages, measurement.calls = watch.stages, watch.calls // (steps - 1)
    measurement.peak = max(watch.stages.values())
    measurement.held = sum(tensor.nbytes for tensor in tensors_held(model, optimizer))
    measurement.weights = [parameter.detach().cpu().clone() for parameter in model.parameters()]


class Products(TorchDispatchMode):
    """Add up the operations of all matrix products: 2 m n k each. Attention's own kernel does not count as a product.

    torch's FlopCounterMode counts the same, but its hooks keep values that a checkpoint would recompute, which changes the
    peak.
    """

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Handle every operation."""
        result = function(*args, **(kwargs or {}))
        if function.overloadpacket in PRODUCTS:
            self.flops += 2 * result.numel() * args[-2].shape[-1]
        return result


class Watch:
    """The peak of memory in each stage of a step, in bytes, and how often the model was called."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.begin()

    def begin(self) -> None:
        """Discard the observations so far."""
        self.stages: dict[str, int] = {}
        self.calls, self.stage = 0, "step"
        self.memory.reset_peak()

    def enter(self, stage: str) -> None:
        """Begin a stage, and record the peak so far as that of the previous stage."""
        self.stages[self.stage] = max(self.stages.get(self.stage, 0), self.memory.peak())
        self.stage = stage
        self.memory.reset_peak()

    def count(self, *_: object) -> None:
        """Count a call of the model."""
        self.calls += 1
