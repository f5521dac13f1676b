"""The model and the samples of 3.5, and a training run with the groups of my_group.py."""

from __future__ import annotations

import importlib
from collections import Counter
from typing import TYPE_CHECKING

import bench
import torch
from ranks import flat
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from ranks import World

SEED, CLASSES, PIXELS, RATE, IGNORED = 0, 10, 784, 0.05, -100


def make_all_samples(world: World, per_rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the inputs and labels of each rank. All have different samples, but the same number of them."""
    source = torch.Generator().manual_seed(SEED)
    images = torch.randn(world.size * per_rank, PIXELS, generator=source)
    labels = (images @ torch.randn(PIXELS, CLASSES, generator=source)).argmax(dim=1)  # a teacher network sets the labels
    return [(images[rank :: world.size], labels[rank :: world.size]) for rank in range(world.size)]


def make_samples(world: World, per_rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's inputs and labels."""
    images, labels = make_all_samples(world, per_rank)[world.rank]
    return images.to(world.device), labels.to(world.device)


def make_last_group(world: World, per_rank: int, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the first `count` samples of each rank.

    Samples that do not count: none on rank 0, a quarter on rank 1, half on rank 2, and so on.
    """
    group = [(images[:count], labels[:count].clone()) for images, labels in make_all_samples(world, per_rank)]
    for rank, (_, labels) in enumerate(group):
        labels[: rank % 4 * count // 4] = IGNORED
    return group


def count_and_average(traffic, bucket):  # without annotations: DDP checks them, and does not understand them as strings
    """Count a bucket of gradients that DDP sends, then average it over all ranks as DDP itself would."""
    traffic.update(calls=1, sent=bucket.buffer().nbytes)
    return allreduce_hook(None, bucket)


def build(world: World, hidden: int) -> tuple[DistributedDataParallel, torch.optim.Optimizer, Counter]:
    """Return a model that has the same first weights every time, its optimizer, and a count of what it sends. It has no
    BatchNorm, which would tie samples together."""
    torch.manual_seed(SEED)
    wide = nn.Linear(hidden, hidden)
    plain = nn.Sequential(nn.Linear(PIXELS, hidden), nn.ReLU(), wide, nn.ReLU(), nn.Linear(hidden, CLASSES))
    model = DistributedDataParallel(plain.to(world.device), device_ids=[world.device] if world.device.type == "cuda" else None)
    model.register_comm_hook(traffic := Counter(), count_and_average)
    return model, torch.optim.SGD(model.parameters(), lr=RATE), traffic


def compute_error(values: torch.Tensor, right: torch.Tensor) -> float:
    """Return the largest difference of any element, divided by the largest element of `right`."""
    return ((values - right).abs().max() / right.abs().max()).item()


def train(world: World, accumulation_steps: int, micro_batch: int, hidden: int, steps: int) -> dict[str, object]:
    """Train with `one_group` of my_group.py. Return its row of the result table on this rank.

    Its gradients and weights are compared with those of DDP and the big batch, if that fits into memory.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    one_group = importlib.import_module("my_group").one_group
    per_group = accumulation_steps * micro_batch
    images, labels = make_samples(world, per_group)
    short = accumulation_steps // 2 * micro_batch + micro_batch // 2
    errors = {}
    last_group = make_last_group(world, per_group, short)
    all_last = [torch.cat(tensors).to(world.device) for tensors in zip(*last_group, strict=True)]
    last_x, last_y = (tensor.to(world.device) for tensor in last_group[world.rank])
    for name, x, y in (("gradient_error", images, labels), ("last_group_error", last_x, last_y)):
        model, optimizer, _ = build(world, hidden)
        if name == "gradient_error":
            cross_entropy(model(x), y).backward()
        else:  # all samples of all ranks as one batch, on each of them
            cross_entropy(model.module(all_last[0]), all_last[1]).backward()
        right = flat(weight.grad for weight in model.parameters())
        optimizer.zero_grad(set_to_none=True)
        gradients: list[torch.Tensor] = []  # as the optimizer gets them
        optimizer.register_step_pre_hook(lambda *_, m=model, g=gradients: g.append(flat(w.grad for w in m.parameters())))
        one_group(model, optimizer, cut(x, y, micro_batch))
        errors[name] = world.error(gradients[0], right) if gradients else None

    model, optimizer, traffic = build(world, hidden)
    lengths: list[int] = []
    model.module.register_forward_hook(lambda _module, inputs, _output: lengths.append(len(inputs[0])))
    updates = Counter()
    optimizer.register_step_post_hook(lambda *_: updates.update(steps=1))
    pieces = cut(images, labels, micro_batch)

    def take() -> None:
        one_group(model, optimizer, pieces)

    cold = max(3, steps // 5)
    bench.time_each(take, world.device, cold)
    traffic.clear()
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(world.device)
    seconds = world.slowest(bench.time_each(take, world.device, steps))
    peak = torch.cuda.max_memory_allocated(world.device) if world.device.type == "cuda" else None
    right_model, right_optimizer, _ = build(world, hidden)
    for _ in range(cold + steps):
        right_optimizer.zero_grad(set_to_none=True)
        cross_entropy(right_model(images), labels).backward()
        right_optimizer.step()
    return {
        "way": "no_sync, yours", "updates": updates["steps"] / (cold + steps), "allreduce_calls": traffic["calls"] / steps,
        "allreduce_bytes": traffic["sent"] / steps, **bench.spread_ms(seconds),
        "samples_per_s": world.size * per_group / bench.percentile(seconds, 50), "peak_gpu_memory_bytes": peak, **errors,
        "weights_error": world.error(flat(model.parameters()), flat(right_model.parameters())),
        "samples_at_once": max(lengths, default=0),
    }  # fmt: skip


def cut(images: torch.Tensor, labels: torch.Tensor, micro_batch: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return micro-batches. The last may be shorter."""
    return list(zip(images.split(micro_batch), labels.split(micro_batch), strict=True))
