"""Predict the memory of training on ranks that do not exist: a fake process group, and tensors without numbers.

This uses private parts of torch, which any version may remove. Then nothing is predicted, and a message says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

PARTS = {  # torch's names for what memory is used for
    "weights": ("Parameter", "Sharded Param", "Unsharded Param"),
    "gradients": ("Gradient", "Sharded Grad", "Unsharded Grad"),
    "moments": ("Optstate", "OptState"),
    "activations": ("Activation",),
}


def shard(model: nn.Module, mesh: object, *, free_after_forward: bool, **options: object) -> None:
    """Shard `model` in place with FSDP, first block by block, then the remaining weights.

    Weights that are not freed stay whole from forward to backward. `options` are passed on to fully_shard.
    """
    for block in model.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=free_after_forward, **options)
    fully_shard(model, mesh=mesh, reshard_after_forward=free_after_forward, **options)


def predict_peak(stage: int, ranks: int, device: str, build: Callable[[], nn.Module], text: torch.Tensor) -> dict[str, int]:
    """Return the bytes, by part, that rank 0 of that many ranks would hold at the peak of its second step.

    `build` creates the model, and `text` has the shape of this rank's sequences. Stage 0 is one process, without DDP's buckets.
    Nothing is allocated. No process group may exist before the call, and none exists afterwards.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    try:
        mesh = init_device_mesh(device, (ranks,))
        with FakeTensorMode(allow_non_fake_inputs=True):
            with torch.device(device):
                model, text = build(), torch.zeros(text.shape, dtype=text.dtype)
            if stage:
                shard(model, mesh, free_after_forward=stage == 3)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            tracker = FSDPMemTracker(model, optimizer) if stage else MemTracker()
            if stage:
                tracker.track_inputs((text,))
            else:
                tracker.track_external(model, optimizer, text)
            with tracker:
                for number in range(2):
                    nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
                    optimizer.step()
                    optimizer.zero_grad()
                    if number == 0:
                        tracker.reset_mod_stats()
            peak = next(iter(tracker.get_tracker_snapshot("peak").values()))
    finally:
        dist.destroy_process_group()
    sizes = {str(getattr(kind, "value", kind)): size for kind, size in peak.items()}
    rows = {f"{part}_bytes": sum(sizes.get(word, 0) for word in words) for part, words in PARTS.items()}
    return {
        "ranks": ranks,
        "stage": stage,
        **rows,
        "other_bytes": sizes["Total"] - sum(rows.values()),
        "peak_bytes": sizes["Total"],
    }


def predict(
    stages: Iterable[int], counts: Iterable[int], device: str, build: Callable[[], nn.Module], text: torch.Tensor
) -> tuple[list[dict[str, int]], str | None]:
    """Return a row for each number of ranks and each stage but 1, which torch's tracker cannot follow.

    The second result is None, or says why there is no row. `text` has the number of sequences that each rank trains on.
    """
    cases = [(stage, ranks) for ranks in dict.fromkeys(counts) for stage in stages if stage != 1]
    if not cases:
        return [], "not asked for (--virtual-ranks, and a stage other than 1)"
    try:
        distinct = dict.fromkeys((stage, ranks if stage else 1) for stage, ranks in cases)  # stage 0 is the same on all
        peaks = {(stage, ranks): predict_peak(stage, ranks, device, build, text) for stage, ranks in distinct}
    except Exception as error:  # noqa: BLE001  # private in torch: another version may lack it, or fail in any way
        return [], f"torch {torch.__version__} cannot predict it: {type(error).__name__}: {str(error)[:200]}"
    return [peaks[stage, ranks if stage else 1] | {"ranks": ranks} for stage, ranks in cases], None
