"""Train a model that is in slices on the first ranks of a world (FSDP2), with the same batches on any number of ranks.

Exercise 6.2 shows how FSDP works. Here it only provides a training run for checkpoints to save. Needs only torch.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import checkpoints
import torch
import torch.distributed as dist
from ranks import World
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from transformer import Transformer, counting_text

warnings.filterwarnings("ignore", message="FSDP2-wrapped module")  # no output is changed in place here

VOCABULARY, LENGTH, HEADS, SAMPLES, RATE = 64, 16, 8, 1024, 1e-3
BATCH = 32
"""Sequences of one step over all ranks, however many there are."""


@dataclass
class Training:
    """One rank's share of a training run on `mesh`. The mesh's ranks also form `group`, for checkpoints.

    `generator` draws the sequences of a step, the same on every rank, so its state is part of the training.
    """

    model: Transformer
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    mesh: DeviceMesh
    group: dist.ProcessGroup


def count_parameters(width: int, layers: int) -> int:
    """Return the parameters of the model: 12 w² + 13 w per layer of width w, two embeddings, the last norm and the scores."""
    return layers * (12 * width**2 + 13 * width) + width * (2 * VOCABULARY + LENGTH + 2) + VOCABULARY


def be_repeatable(device: torch.device) -> None:
    """Make equal inputs give equal bits. On a GPU, some kernels would otherwise add in the order in which threads arrive."""
    if device.type == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    else:
        torch.set_num_threads(1)


@cache
def _form(world: World, size: int) -> tuple[DeviceMesh, dist.ProcessGroup]:
    """Return the first `size` ranks as a mesh for training and a group for checkpoints.

    Every rank of the world has to call it, in the same order.
    """
    first = list(range(size))
    return DeviceMesh(world.device.type, first), checkpoints.make_group(first)


def build(world: World, size: int, width: int, layers: int, seed: int) -> Training | None:
    """Return a new training run on the first `size` ranks, with weights drawn from `seed`.

    The other ranks also call it, and get None.
    """
    mesh, group = _form(world, size)
    if world.rank >= size:
        return None
    torch.manual_seed(seed)
    model = Transformer(VOCABULARY, LENGTH, width, HEADS, layers).to(world.device)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), RATE)
    return Training(model, optimizer, torch.Generator().manual_seed(seed), mesh, group)


def train(training: Training, steps: Iterable[int]) -> dict[int, float]:
    """Train for these steps, and return the mean loss of each step over the whole batch.

    A rank adds up the losses of its share, so the shares need not be equal. FSDP averages the gradients over the ranks, hence
    the factor.
    """
    text = counting_text(SAMPLES, LENGTH, VOCABULARY, torch.Generator().manual_seed(1))
    size, rank, device = training.mesh.size(), training.mesh.get_local_rank(), next(training.model.parameters()).device
    losses = {}
    for step in steps:
        batch = torch.randint(SAMPLES, (BATCH,), generator=training.generator)
        share = text[batch[rank * BATCH // size : (rank + 1) * BATCH // size]].to(device)
        scores = training.model(share[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(scores, share[:, 1:].flatten(), reduction="sum") / (BATCH * LENGTH)
        training.optimizer.zero_grad()
        (loss * size).backward()
        training.optimizer.step()
        losses[step] = loss.detach()
    all_losses = torch.stack(list(losses.values())) if losses else torch.empty(0, device=device)
    dist.all_reduce(all_losses, group=training.mesh.get_group())
    return dict(zip(losses, all_losses.tolist(), strict=True))


def gather_whole(training: Training) -> list[torch.Tensor]:
    """Return every tensor of the training run in one piece, in rank 0's memory of the processor. The other ranks get []."""
    tensors = [*training.model.parameters(), *(value for kept in training.optimizer.state.values() for value in kept.values())]
    gathered = []
    for tensor in tensors:
        whole = (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach()
        if training.mesh.get_local_rank() == 0:
            gathered.append(whole.cpu())
    return gathered


def save_one_file(training: Training, path: Path) -> dict[str, float] | None:
    """Write all tensors of the training run to one file on rank 0, as on one GPU.

    Return its bytes, the seconds in total, and the seconds of gathering. The other ranks only send their slices and get None.
    """
    start = time.perf_counter()
    tensors = gather_whole(training)
    after_gather = time.perf_counter()
    if training.mesh.get_local_rank() > 0:
        return None
    with path.open("wb") as file:
        torch.save(tensors, file)
        file.flush()
        os.fsync(file.fileno())
    end = time.perf_counter()
    return {"bytes": path.stat().st_size, "seconds": end - start, "gather_s": after_gather - start}
