"""Compare five ways to send the same gradients, one of them the learner's: messages, bytes sent before backward was over, and
the time of a step.

The model is deep, so it has many gradients, which are complete one after another. Each way prepares a model. It returns the
model to call, and a function to call after `backward`. All of them send with `dist.all_reduce`, which is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import bench
import own_part
import ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED, CLASSES, PIXELS = 0, 10, 784
LAYERS, MAX_BUCKET_BYTES, WHOLE = 16, 1 << 20, 1 << 40  # WHOLE: bytes of a bucket for all gradients
RATE, NOISY_BELOW, STEEP_ABOVE = 0.05, 128, 4096  # learning rate; samples per step; units
TOLERANCE, LOSS_TOLERANCE = 1e-4, 0.01  # of the largest element; of the loss: sums in a different order are rounded differently

Prepared = tuple[nn.Module, Callable[[], None]]


def make_samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images and labels, the same on every rank. A teacher network sets the labels, so there is something to learn."""
    source = torch.Generator().manual_seed(SEED)
    images = torch.randn(count, PIXELS, generator=source)
    return images, (images @ torch.randn(PIXELS, CLASSES, generator=source)).argmax(dim=1)


def build(hidden: int, device: torch.device) -> nn.Module:
    """Return the model that is trained, with the same weights on every rank."""
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES)).to(device)


def build_deep(hidden: int, device: torch.device) -> nn.Module:
    """Return a model of many layers, half as wide."""
    torch.manual_seed(SEED)
    width = max(1, hidden // 2)
    middle = [layer for _ in range(LAYERS) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), *middle, nn.Linear(width, CLASSES)).to(device)


def choose_bucket_bytes(model: nn.Module) -> int:
    """Return the size of a bucket: 1 MiB, or less for a model that would fit into three of them."""
    total = sum(parameter.nbytes for parameter in model.parameters())
    return MAX_BUCKET_BYTES if total >= 4 * MAX_BUCKET_BYTES else max(1, total // 32)


def learning_rate(samples: int, hidden: int) -> float:
    """Return RATE, or a smaller rate if RATE would diverge. Few samples (of all ranks) make the gradient noisy, and a wide
    layer makes it steep."""
    return RATE * min(1, samples / NOISY_BELOW) * min(1, STEEP_ABOVE / hidden)


@dataclass
class MessageLog:
    """The bytes of each all-reduce, and whether a gradient was still to be computed when it began."""

    sizes: list[int] = field(default_factory=list)
    early: list[bool] = field(default_factory=list)
    complete: int = 0
    parameters: int = 0

    def restart(self) -> None:
        """Clear the record before another step."""
        self.sizes, self.early, self.complete = [], [], 0

    def add(self, size: int) -> None:
        """Record an all-reduce."""
        self.sizes.append(size)
        self.early.append(self.complete < self.parameters)

    def observe(self, model: nn.Module) -> None:
        """Count the gradients of this model from now on."""

        def count(_: torch.Tensor) -> None:
            self.complete += 1

        self.parameters = sum(1 for _ in model.parameters())
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(count)


def count_all_reduces() -> MessageLog:
    """Record every later `dist.all_reduce` of this process, and return the record."""
    log, all_reduce = MessageLog(), dist.all_reduce

    def count_and_reduce(tensor: torch.Tensor, *arguments: Any, **settings: Any) -> Any:
        log.add(tensor.nbytes)
        return all_reduce(tensor, *arguments, **settings)

    dist.all_reduce = dist.distributed_c10d.all_reduce = count_and_reduce
    return log


def send_each(model: nn.Module) -> Prepared:
    """Send one message for each gradient, after backward."""

    def finish() -> None:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

    return model, finish


def send_in_buckets(model: nn.Module, bucket_bytes: int, *, is_late: bool = False) -> Prepared:
    """Let DistributedDataParallel fill buckets and send each as soon as it is full, while backward continues; or, if `is_late`,
    send all of them after backward."""
    ids = [next(model.parameters()).device] if next(model.parameters()).is_cuda else None
    parallel = DistributedDataParallel(model, device_ids=ids, bucket_cap_mb=bucket_bytes / 2**20, gradient_as_bucket_view=True)
    full: list[torch.Tensor] = []

    def send(_, bucket):  # torch compares annotations with types, and here they would be strings
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    def keep(_, bucket):
        full.append(bucket.buffer().div_(dist.get_world_size()))
        future = torch.futures.Future(devices=ids)
        future.set_result(full[-1])
        return future

    def finish() -> None:
        for buffer in full:  # the gradients are views of these buffers
            dist.all_reduce(buffer)
        full.clear()

    parallel.register_comm_hook(None, keep if is_late else send)
    return parallel, finish


WAYS: dict[str, Callable[[nn.Module], Prepared]] = {
    "each gradient, after backward": send_each,
    "buckets, after backward": lambda model: send_in_buckets(model, choose_bucket_bytes(model), is_late=True),
    "one flat tensor, after backward": lambda model: send_in_buckets(model, WHOLE, is_late=True),
    "buckets, overlapped (DDP)": lambda model: send_in_buckets(model, choose_bucket_bytes(model)),
}


def measure_way(
    world: ranks.World, case: str, way: Callable[[nn.Module], Prepared], log: MessageLog, hidden: int, batch: int, steps: int
) -> dict[str, Any]:
    """Return a row for one way: messages and bytes of a step, times of the slowest rank, and the error of the gradient."""
    images, labels = make_samples(batch * world.size)
    whole_batch, share = (images.to(world.device), labels.to(world.device)), slice(batch * world.rank, batch * (world.rank + 1))
    model = build_deep(hidden, world.device)
    log.observe(model)
    network_of_way, finish = way(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

    def backward(network: nn.Module, x: torch.Tensor, y: torch.Tensor) -> None:
        network.zero_grad(set_to_none=True)
        log.restart()
        nn.functional.cross_entropy(network(x), y).backward()

    def step() -> None:
        backward(network_of_way, whole_batch[0][share], whole_batch[1][share])
        finish()
        optimizer.step()

    bench.time_each(step, world.device, max(5, steps // 5))  # DDP lays out its buckets after the first step
    model.load_state_dict(build_deep(hidden, world.device).state_dict())
    step()
    early_bytes = sum(size for size, is_early in zip(log.sizes, log.early, strict=True) if is_early)
    row = {"case": case, "messages": len(log.sizes), "bytes": sum(log.sizes)}
    row |= {"early_percent": 100 * early_bytes / max(1, row["bytes"]), "least_message_bytes": min(log.sizes[:-1], default=None)}
    averaged = ranks.flat(parameter.grad for parameter in model.parameters())
    reference = build_deep(hidden, world.device)
    backward(reference, *whole_batch)
    error = world.error(averaged, ranks.flat(parameter.grad for parameter in reference.parameters()))
    seconds = world.slowest(bench.time_each(step, world.device, steps))
    return row | bench.spread_ms(seconds) | {"gradient_error": error}


def time_messages(world: ranks.World, hidden: int) -> float:
    """Return the ratio of two times: one message for each gradient, and one message with all gradients as a flat tensor.
    Nothing is computed meanwhile."""
    gradients = [torch.zeros_like(parameter) for parameter in build_deep(hidden, world.device).parameters()]
    flat = torch.zeros(sum(gradient.numel() for gradient in gradients), device=world.device)

    def send_all() -> None:
        for gradient in gradients:
            dist.all_reduce(gradient)

    medians = []
    for call in (send_all, lambda: dist.all_reduce(flat)):
        seconds = bench.time_calls(
            call, world.device, budget_s=0.3, agree=lambda value: world.slowest([value])[0], prepare=world.wait_for_all
        )
        medians.append(bench.percentile(world.slowest(seconds), 50))
    return medians[0] / medians[1]


def train_and_measure(world: ranks.World, *, samples: int, batch: int, hidden: int, epochs: int, steps: int) -> dict[str, Any]:
    """Train with the learner's `share_gradients`. Return its loss and DDP's, the difference between their parameters, the
    bucket size, and two rows for the table of ways to send gradients."""
    log = count_all_reduces()
    from my_ddp import share_gradients  # after the counting has begun: the part may import all_reduce by name

    images, labels = make_samples(samples)
    sampler = DistributedSampler(images, num_replicas=world.size, rank=world.rank, seed=SEED, drop_last=True)
    loader = DataLoader(TensorDataset(images, labels), batch_size=batch, sampler=sampler)

    def train(network: nn.Module, finish: Callable[[], None]) -> float:
        optimizer = torch.optim.SGD(network.parameters(), lr=learning_rate(batch * world.size, hidden), momentum=0.9)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for x, y in loader:
                network.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(network(x.to(world.device)), y.to(world.device)).backward()
                finish()
                optimizer.step()
        with torch.no_grad():
            return nn.functional.cross_entropy(network(images.to(world.device)), labels.to(world.device)).item()

    model = build(hidden, world.device)
    losses = [
        train(model, share_gradients(model, choose_bucket_bytes(model))),
        train(*WAYS["buckets, overlapped (DDP)"](build(hidden, world.device))),
    ]
    difference = world.difference(ranks.flat(model.parameters()))
    rows = []
    for case, in_buckets in (("yours, each gradient", False), ("yours, buckets", True)):

        def prepare(network: nn.Module, in_buckets: bool = in_buckets) -> Prepared:
            return network, share_gradients(network, choose_bucket_bytes(network) if in_buckets else 0)

        rows.append(measure_way(world, case, prepare, log, hidden, batch, steps))
    return {"loss_after": losses[0], "loss_of_ddp": losses[1], "parameter_difference": difference, "rows": rows,
            "bucket_bytes": choose_bucket_bytes(build_deep(hidden, world.device))}  # fmt: skip


def describe(outcome: own_part.Outcome, size: int) -> str | None:
    """Return "right", or a sentence on the fault of the learner's DDP in this run. Return None if the part is open, or for one
    rank."""
    if outcome.state == "open" or size == 1:
        return None
    if outcome.state == "failed":
        return outcome.text
    result = outcome.results[0]
    single_row, bucket_row = result["rows"]
    if result["parameter_difference"] != 0:
        return f"after training the ranks hold different parameters, by up to {result['parameter_difference']:.3g}"
    if not abs(result["loss_after"] / result["loss_of_ddp"] - 1) <= LOSS_TOLERANCE:
        return f"after training the loss is {result['loss_after']:.4f}, and DDP's is {result['loss_of_ddp']:.4f}"
    for row in (single_row, bucket_row):
        if not row["gradient_error"] <= TOLERANCE:
            return f"{row['case']}: the gradient is not that of the whole batch, off by {row['gradient_error']:.2g}"
        if row["early_percent"] == 0:
            return f"{row['case']}: no message began before backward was over"
    if bucket_row["least_message_bytes"] is not None and bucket_row["least_message_bytes"] < result["bucket_bytes"]:
        return f"with buckets of {result['bucket_bytes']:,} bytes it sent a message of {bucket_row['least_message_bytes']:,}"
    return "right"
