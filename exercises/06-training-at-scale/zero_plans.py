"""Compare the learner's counts of 6.2 with what ranks hold and send at each stage and under other plans."""

from __future__ import annotations

import gc
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
import virtual_ranks
from fsdp_trial import count_kept_bytes
from shard_bytes import pad_numbers, ring_times
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from zero_step import MEASURED, STAGES, Plan

PARTS = ("weights", "gradients", "moments")
PAPER_GB = {0: 120.0, 1: 31.4, 2: 16.6, 3: 1.9}  # Rajbhandari et al., 2020, figure 1
Row = dict[str, Any]


class LinkBytes(TorchDispatchMode):
    """Counts, inside a `with`, the bytes that a rank sends in rings inside nodes and across them, on average over each ring."""

    def __init__(self, per_node: int) -> None:
        super().__init__()
        self._per_node, self.inside, self.across = per_node, 0.0, 0.0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function).replace("allgather", "all_gather").replace("allreduce", "all_reduce")
        kind = next((kind for kind in ("all_gather", "reduce_scatter", "all_reduce") if "c10d" in name and kind in name), None)
        if kind:
            whole = max((item.nbytes for item in tree_iter(args) if isinstance(item, torch.Tensor)), default=0)
            group = next(item for item in args if isinstance(item, torch.ScriptObject))  # before the operation
            ring = dist.get_process_group_ranks(dist.ProcessGroup.unbox(group))
            links = zip(ring, [*ring[1:], ring[0]], strict=True)
            crossing = sum(first // self._per_node != second // self._per_node for first, second in links) / len(ring)
            sent = ring_times(kind, len(ring)) * whole
            self.across += crossing * sent
            self.inside += (1 - crossing) * sent
        return function(*args, **(kwargs or {}))


def measure(name: str, world: Any, nodes: int, build: Callable[[], nn.Module], batch: torch.Tensor) -> Row | None:
    """Train two steps under one of the MEASURED plans, as torch implements it. Return a row with what a rank holds and sends.

    Return None if the ranks cannot form this plan. The parameters include torch's padding.
    """
    per_node = world.size // nodes
    if MEASURED[name]["weights"] == "node" and (per_node < 2 or nodes < 2):
        return None
    shapes = [tuple(weight.shape) for weight in build().parameters()]
    numbers = pad_numbers(shapes, per_node if MEASURED[name]["weights"] == "node" else world.size)
    plan = Plan(numbers, nodes, per_node, **MEASURED[name])
    gc.freeze()  # what exists is not counted
    model = build().to(world.device)
    levels = {"copies": nodes, "shards": per_node} if plan.weights == "node" else {"shards": world.size}
    mesh = init_device_mesh(world.device.type, tuple(levels.values()), mesh_dim_names=tuple(levels))
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if plan.weight_wire == 2 else MixedPrecisionPolicy()
    virtual_ranks.shard(model, mesh, free_after_forward=plan.frees, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    held = 0
    for step in range(2):
        counted = LinkBytes(per_node)
        with counted:
            for number, part in enumerate(batch.tensor_split(plan.micro_batches)):
                is_last = number == plan.micro_batches - 1
                model.set_requires_gradient_sync(is_last or plan.gradients != "whole")
                model.set_requires_all_reduce(is_last)
                model.set_reshard_after_backward(is_last or plan.frees)
                loss = nn.functional.cross_entropy(model(part[:, :-1]).flatten(0, 1).float(), part[:, 1:].flatten())
                loss.backward()
                del loss
                if step and number == max(0, plan.micro_batches - 2):
                    held = count_kept_bytes()
        optimizer.step()
        optimizer.zero_grad()
    gc.unfreeze()
    padding = numbers - sum(torch.Size(shape).numel() for shape in shapes)
    held_bytes = sum(world.gather(held)) / world.size + 8 * padding / mesh.size(-1)  # as if padding had moments, too
    open_columns = dict.fromkeys(("held_by_yours", "inside_by_yours", "across_by_yours"))
    row = {"plan": name, "settings": vars(plan), "held_bytes": held_bytes}
    return row | {"inside_bytes": counted.inside, "across_bytes": counted.across} | open_columns


def compare(rows: Sequence[Row], plans: Sequence[Row], parameters: int, nodes: int, ranks: int) -> tuple[Row, str]:
    """Add the results of my_count.py to the row of each stage and of each plan.

    Return the largest differences: from the stages in bytes, from the plans in percent of what is held and in bytes of what is
    sent, and from the paper in GB. The second result is "no error", or the error of my_count.py; then nothing is added, and
    nothing is compared.
    """
    try:
        import my_count

        stages = [my_count.count(Plan(parameters, nodes, ranks // nodes, **STAGES[row["stage"]])) for row in rows]
        others = [my_count.count(Plan(**row["settings"])) for row in plans]
        paper = [my_count.count(Plan(7_500_000_000, 8, 8, **STAGES[stage], weight=2, gradient=2, state=12)).held
                 for stage in PAPER_GB]  # fmt: skip
        off_gb = max(abs(size / 1e9 - right) for size, right in zip(paper, PAPER_GB.values(), strict=True))
        for row, (held, inside, across, _) in zip(rows, stages, strict=True):
            row |= {"by_formula_bytes": held, "sent_by_formula_bytes": inside + across}
        for row, (held, inside, across, _) in zip(plans, others, strict=True):
            row |= {"held_by_yours": held, "inside_by_yours": inside, "across_by_yours": across}
        held_off = [abs(row["state_bytes"] - row["by_formula_bytes"]) for row in rows]
        sent_off = [abs(row["sent_bytes"] - row["sent_explained_bytes"] - row["sent_by_formula_bytes"]) for row in rows]
        held_of_plans = [100 * abs(row["held_by_yours"] / row["held_bytes"] - 1) for row in plans]
        sent_of_plans = [abs(row[f"{way}_bytes"] - row[f"{way}_by_yours"]) for row in plans for way in ("inside", "across")]
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
        if not isinstance(error, NotImplementedError):
            traceback.print_exc(file=sys.stdout)
        keys = ("paper_off_gb", "held_off_bytes", "sent_off_bytes", "plans_held_off_percent", "plans_sent_off")
        return dict.fromkeys(keys), describe(error)
    return {
        "paper_off_gb": off_gb, "held_off_bytes": round(max(held_off), 3), "sent_off_bytes": round(max(sent_off), 3),
        "plans_held_off_percent": round(max(held_of_plans), 3), "plans_sent_off": round(max(sent_of_plans), 3),
    }, "no error"  # fmt: skip


def describe(error: Exception) -> str:
    """Return an error in one line: its class and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
