"""The training of 3.8, with any communication hook, and a count of what the hook sends."""

from __future__ import annotations

import functools
import importlib
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import bench
import ranks
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

if TYPE_CHECKING:
    from ranks import World

SEED, CLASSES, PIXELS, RATE = 0, 10, 784, 0.02
TINY = 4e-9
"""A gradient that float16, whose smallest number is 6e-8, cannot hold."""
GATHER = "all_gather_single" if hasattr(dist, "all_gather_single") else "all_gather_into_tensor"  # renamed in PyTorch 2.13
LARGEST_FP8 = 448.0  # torch.float8_e4m3fn has 4 bits of exponent, 3 of mantissa, and no infinity


@dataclass(frozen=True)
class Setting:
    """The settings that all training runs share. `cold` is the number of first steps that are not timed."""

    hidden: int
    batch_size: int
    bucket_mb: float
    steps: int
    cold: int


def count_sent() -> Counter:
    """Return a counter that counts the bytes and the calls that hooks pass to collectives from now on."""
    sent: Counter = Counter()

    def count(collective: Callable, place: int, *arguments, **kwargs):
        tensor = arguments[place]
        sent.update(bytes=tensor.nbytes, calls=int(tensor.numel() > 0))
        return collective(*arguments, **kwargs)

    dist.all_reduce = functools.partial(count, dist.all_reduce, 0)
    setattr(dist, GATHER, functools.partial(count, getattr(dist, GATHER), 1))
    return sent


def fp8_gather_hook(state, bucket):  # without annotations: DDP checks them, and does not understand them as strings
    """Send each number in one byte, and the scale of the bucket in four. Every rank computes the mean of what all have sent.

    A sum in float8 would have 3 bits, so nothing is summed on the way: this is an AllGather. `state` is the group. What is
    rounded off is lost.
    """
    group = state
    ranks_in_group = dist.get_world_size(group)
    gradients = bucket.buffer()
    scale = (gradients.abs().max() / LARGEST_FP8).clamp_min(1e-30)
    small = (gradients / scale).to(torch.float8_e4m3fn)
    packet = torch.cat([small.view(torch.uint8), scale.reshape(1).view(torch.uint8)])
    packets = packet.new_empty(ranks_in_group * len(packet))

    def mean(_future):
        numbers, scales = packets.view(ranks_in_group, -1).split([len(small), 4], dim=1)
        rows = numbers.view(torch.float8_e4m3fn).float() * scales.clone(memory_format=torch.contiguous_format).view(
            torch.float32
        )
        return rows.mean(dim=0)

    return getattr(dist, GATHER)(packets, packet, group=group, async_op=True).get_future().then(mean)


def train(
    world: World,
    sent: Counter,
    setting: Setting,
    hook: Callable,
    state: object,
    group: dist.ProcessGroup,
    *,
    scale: float = 1.0,
) -> dict[str, object]:
    """Return the losses, times and bytes of a training run in which `hook` sends the gradients. The model and the data are the
    same every time. `scale` multiplies the loss, and divides the learning rate."""
    source = torch.Generator().manual_seed(SEED)
    images = torch.randn(setting.batch_size * world.size, PIXELS, generator=source)
    labels = (images @ torch.randn(PIXELS, CLASSES, generator=source)).argmax(dim=1).to(world.device)  # by a teacher network
    images, own_share = images.to(world.device), slice(setting.batch_size * world.rank, setting.batch_size * (world.rank + 1))
    torch.manual_seed(SEED)
    width = setting.hidden
    layers = (nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))
    plain = nn.Sequential(*layers).to(world.device)
    model = DistributedDataParallel(plain, process_group=group, bucket_cap_mb=setting.bucket_mb)
    model.register_comm_hook(state, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE / scale, momentum=0.9)
    losses, seconds, counts, rms = [], [], [], 0.0

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images[own_share]), labels[own_share])
        (loss * scale).backward()  # here the hook gets each bucket of gradients as soon as it is complete
        optimizer.step()
        losses.append(loss.detach())

    for _ in range(setting.steps):
        sent.clear()
        seconds += bench.time_each(step, world.device, 1)
        counts.append(Counter(sent))
        rms = rms or ranks.flat(weight.grad for weight in plain.parameters()).square().mean().sqrt().item()
    with torch.no_grad():
        loss = nn.functional.cross_entropy(plain(images), labels).item()
    return {
        "loss": loss, "losses": torch.stack(losses).tolist(), "seconds": seconds[setting.cold :],
        "bytes_first_step": counts[0]["bytes"], "bytes": counts[-1]["bytes"], "calls": counts[-1]["calls"],
        "first_rms": rms, "weights": ranks.flat(plain.parameters()),
        "shapes": [tuple(weight.shape) for weight in plain.parameters()],
    }  # fmt: skip


def shrink(rms: float) -> float:
    """Return the power of two by which the loss is multiplied so that gradients with the root mean square `rms` become tiny.

    The learning rate is divided by it, so in float32 the training is the same, to the last bit.
    """
    return 2.0 ** round(math.log2(TINY / rms))


def train_with_own_hook(world: World, **setting: float) -> dict[str, object]:
    """Train with the hook of my_hook.py, with gradients of usual size and with tiny ones. Return its row on this rank.

    In the first step, AllReduce sends the gradients: DDP makes its final buckets after that step, and an error belongs to one
    bucket.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    sent = count_sent()  # before my_hook.py can import all_reduce by name
    hook = importlib.import_module("my_hook").half_hook
    usual = train(world, sent, Setting(**setting), _start_in_second_step(hook), {}, dist.group.WORLD)
    tiny = train(
        world, sent, Setting(**setting), _start_in_second_step(hook), {}, dist.group.WORLD, scale=shrink(usual["first_rms"])
    )
    return {
        "hook": "yours", "bytes_first_step": usual["bytes_first_step"], "bytes_per_step": usual["bytes"],
        "messages_per_step": usual["calls"], **bench.spread_ms(world.slowest(usual["seconds"])), "losses": usual["losses"],
        "loss_after": usual["loss"], "tiny_loss_after": tiny["loss"],
        "parameter_difference": world.difference(usual["weights"]),
    }  # fmt: skip


def _start_in_second_step(hook: Callable) -> Callable:
    """Return a hook that is AllReduce in the first step, and `hook` in all others. It has no annotations, which DDP would
    check."""
    has_begun = False

    def call(state, bucket):
        nonlocal has_begun
        if has_begun:
            return hook(state, bucket)
        has_begun = bucket.is_last()
        return allreduce_hook(dist.group.WORLD, bucket)

    return call
