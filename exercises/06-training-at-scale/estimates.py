"""Estimate the peak memory of a training run from shapes, with fake tensors, which have a size but no memory.

FakeTensorMode runs training without its data. MemTracker adds up the memory of the tensors by purpose. If a version of torch no
longer has these two parts, there is no estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import gpus
import torch
from techniques import MENU, MIB, Shape, Technique, make_optimizer, train

try:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker
except ImportError as error:
    MISSING = f"torch {torch.__version__} has no {error.name or 'MemTracker'} any more"
else:
    MISSING = ""

GIB = 1 << 30
CONTEXT_BYTES = 320 * MIB  # roughly what the CUDA context takes before the first tensor
LARGE = Shape(layers=12, width=768, length=1024, batch=4, vocabulary=50257)  # the size of GPT-2 small
BATCHES = (4, 8, 16, 32)
GPUS = {
    "t4": "Tesla T4", "l4": "NVIDIA L4", "a10g": "NVIDIA A10G", "l40s": "NVIDIA L40S", "a100": "NVIDIA A100-SXM4-40GB",
    "h100": "NVIDIA H100 80GB HBM3",
}  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """The bytes of one step at its peak. `activations` are all tensors of forward and backward that are not gradients."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def constant_part(self) -> int:
        """Return the bytes that do not depend on the batch."""
        return self.weights + self.gradients + self.optimizer

    @property
    def total(self) -> int:
        """Return the bytes of all parts."""
        return self.constant_part + self.activations


def estimate(shape: Shape, technique: Technique) -> Estimate | None:
    """Return the peak of a step of that technique after the optimizer has created its moments, or None if torch cannot estimate
    it."""
    if MISSING:
        return None
    device = torch.device("cpu")
    with FakeTensorMode():
        model = shape.make_model(device)
        optimizer = make_optimizer(model, technique)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()  # creates the moments
        optimizer.zero_grad(set_to_none=True)
        batch = torch.zeros(shape.batch, shape.length + 1, dtype=torch.long)
        tracker = MemTracker()
        tracker.track_external(model, optimizer)
        with tracker:
            train(technique, model, batch, optimizer, device)
        kinds: dict[str, int] = {}
        for row in tracker.get_tracker_snapshot("peak").values():
            for kind, size in row.items():
                kinds[getattr(kind, "name", str(kind))] = kinds.get(getattr(kind, "name", str(kind)), 0) + size
    activations = sum(kinds.get(name, 0) for name in ("ACT", "TEMP", "OTH"))
    return Estimate(kinds["PARAM"] + kinds.get("BUFFER", 0), kinds["GRAD"], kinds["OPT"], activations)


def scale(estimate_of_batch: Estimate, batch: int, to: int) -> Estimate:
    """Return the estimate for another batch size, to which the activations are proportional."""
    return replace(estimate_of_batch, activations=estimate_of_batch.activations * to // batch)


def find_largest_batch(estimate_of_batch: Estimate, batch: int, room: int) -> int:
    """Return the largest number of sequences whose step takes at most `room` bytes, or 0 if none fits.

    Start from the estimate for `batch` sequences.
    """
    return max(0, (room - estimate_of_batch.constant_part) * batch // estimate_of_batch.activations)


def room_on(name: str) -> int:
    """Return the bytes for tensors on the GPU with that short name: a T4 of 16 GB has 14.6 GiB."""
    gpu = gpus.find(GPUS[name])
    if gpu is None:
        raise KeyError(f"{GPUS[name]} is not in gpus.json")
    return int(gpu.memory_gb * 1e9) - CONTEXT_BYTES


def find_gpu(size: int) -> str:
    """Return the GPU with the least memory that is enough for that many bytes, or "none"."""
    rooms = sorted((room_on(name), name) for name in GPUS)
    return next((name for room, name in rooms if size <= room), "none")


def plan_large() -> dict[bool, Estimate] | None:
    """Return the estimates for LARGE, first without checkpointing, then with every block checkpointed."""
    estimates = {bool(technique.every): estimate(LARGE, technique) for technique in MENU[:2]}
    return {key: row for key, row in estimates.items() if row} or None


def list_rows(estimates: dict[bool, Estimate]) -> list[dict[str, object]]:
    """Return LARGE's memory in GiB at each of BATCHES, and the smallest GPU for it."""
    rows: list[dict[str, object]] = []
    for checkpointing, of_one in estimates.items():
        for batch in BATCHES:
            row = scale(of_one, LARGE.batch, batch)
            rows.append({
                "checkpointing": "every block" if checkpointing else "none", "batch": batch,
                "activations_gib": row.activations / GIB, "weights_gib": row.weights / GIB,
                "optimizer_gib": row.optimizer / GIB, "total_gib": row.total / GIB, "fits_on": find_gpu(row.total),
            })  # fmt: skip
    return rows
