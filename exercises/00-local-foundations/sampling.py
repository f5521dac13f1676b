"""The samples and the model of exercise 0.2, a check of shares in numbers, and a training run with the shares of my_shares.py.

You will learn    what an even and complete split is, in numbers; how to feed DDP with your own sampler
You will produce  nothing directly: local_ddp.py uses all of it
Run it            torchrun --nproc-per-node=2 local_ddp.py
Your part         write my_shares.py; `train` trains on its shares
Reading           modules/00-local-foundations/lesson-2-ranks.md, "The same script, several times"
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ranks
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SEED, FEATURES, CLASSES, LR = 0, 32, 4, 0.5


def make_samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the features and labels of all samples. Every rank makes the same."""
    source = torch.Generator().manual_seed(SEED)
    features = torch.randn(count, FEATURES, generator=source)
    return features, (features @ torch.randn(FEATURES, CLASSES, generator=source)).argmax(dim=1)


def build(seed: int, device: torch.device) -> nn.Module:
    """Return a model with weights that depend on the seed."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, CLASSES)).to(device)


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy, in nats."""
    device = next(model.parameters()).device
    return nn.functional.cross_entropy(model(x.to(device)), y.to(device))


def count(every_share: Sequence[Sequence[Sequence[int]]], samples: int) -> dict[str, int | None]:
    """Return how often each fault occurs in the shares, by name.

    `every_share[rank][epoch]` lists the samples of a rank in an epoch.

    `samples_missing` and `samples_twice` are counts of the worst epoch. The last two counts are None if they prove nothing:
    with one epoch or few samples, an order or a share can repeat by chance.
    """
    by_epoch = list(zip(*every_share, strict=True))
    first_epoch, *later_epochs = every_share[0]
    can_compare = bool(later_epochs) and len(first_epoch) > 7
    return {
        "samples_missing": max(samples - len(set().union(*epoch)) for epoch in by_epoch),
        "samples_twice": max(sum(map(len, epoch)) - len(set().union(*epoch)) for epoch in by_epoch),
        "samples_twice_expected": math.ceil(samples / len(every_share)) * len(every_share) - samples,
        "epochs_in_the_order_of_the_first": sum(share == first_epoch for share in later_epochs) if can_compare else None,
        "epochs_with_the_samples_of_the_first": sum(set(share) == set(first_epoch) for share in later_epochs)
        if can_compare and len(every_share) > 1
        else None,
    }


def count_seen(shares: Sequence[Sequence[int]], batch_size: int, sampler: str) -> list[dict[str, object]]:
    """Return a row for each step of a rank, with the number of different samples that it has seen. `shares` lists its samples
    of each epoch."""
    batches = [share[first : first + batch_size] for share in shares for first in range(0, len(share), batch_size)]
    seen: set[int] = set()
    rows: list[dict[str, object]] = []
    for step, batch in enumerate(batches, start=1):
        seen.update(batch)
        rows.append({"sampler": sampler, "step": step, "seen": len(seen)})
    return rows


def find_fault(row: dict[str, Any]) -> str:
    """Return a sentence about what is wrong with a training run, or `right`."""
    if row["samples_missing"]:
        return f"{row['samples_missing']} samples belonged to no rank in an epoch"
    if row["samples_twice"] != row["samples_twice_expected"]:
        return f"{row['samples_twice']} samples were dealt twice, but {row['samples_twice_expected']} would be enough"
    if row["epochs_in_the_order_of_the_first"]:
        return f"{row['epochs_in_the_order_of_the_first']} later epochs had the order of the first"
    if row["epochs_with_the_samples_of_the_first"]:
        return f"in {row['epochs_with_the_samples_of_the_first']} later epochs rank 0 had the same samples as in the first"
    return "right" if row["loss_after"] < row["loss_before"] else "the loss did not fall"


def train(world: ranks.World, samples: int, batch_size: int, epochs: int) -> dict[str, object]:
    """Train with DDP on the samples that my_shares.py chooses, and return the counts and the losses.

    Raises ValueError if a sample does not exist, or if ranks have different numbers of samples and so would wait for ever.
    """
    import my_shares  # the learner's file, which may raise or hang: `own_part` limits its time

    shares: list[list[int]] = []
    for epoch in range(epochs):
        shares.append([int(number) for number in my_shares.choose_samples(samples, world.size, world.rank, epoch, SEED)])
        if strangers := [number for number in shares[-1] if not 0 <= number < samples]:
            raise ValueError(f"there is no sample {strangers[0]}: they are numbered 0 to {samples - 1}")
    every_share = world.gather(shares)
    for epoch, lengths in enumerate(zip(*([len(share) for share in of_rank] for of_rank in every_share), strict=True)):
        if len(set(lengths)) > 1 or not lengths[0]:
            raise ValueError(f"in epoch {epoch} the ranks got {', '.join(map(str, lengths))} samples: all need the same number")

    features, labels = make_samples(samples)
    single_model = build(SEED + world.rank, world.device)
    model = DistributedDataParallel(single_model, device_ids=[world.device] if world.device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=LR)
    steps = 0
    with torch.no_grad():
        loss_before = loss_of(single_model, features, labels).item()
    for share in shares:
        for batch in torch.tensor(share).split(batch_size):
            optimizer.zero_grad()
            loss_of(model, features[batch], labels[batch]).backward()
            optimizer.step()
            steps += 1
    with torch.no_grad():
        loss_after = loss_of(single_model, features, labels).item()
    seen = count_seen(every_share[0], batch_size, "yours")
    return {"steps": steps, **count(every_share, samples), "loss_before": loss_before, "loss_after": loss_after, "seen": seen}
