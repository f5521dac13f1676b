"""Train a plan's form on these ranks, with its checkpointing and ZeRO, and compare it with one process.

This is the part of 6.6 that computes for real.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import bench
import gpus
import ranks
import torch
import torch.distributed as dist
from layouts import LayoutResult, Reference, run_layout
from mesh_model import Layout, Shape, Stage, count_weights
from plans import Plan
from torch.distributed.device_mesh import DeviceMesh
from torch.utils.checkpoint import checkpoint

try:
    from torch.distributed.fsdp import fully_shard  # public since torch 2.6
except ImportError:
    fully_shard = None

MATMUL, WINDOW_S = 256, 0.3


def prepare_stage(plan: Plan) -> Callable[[Stage, DeviceMesh], None]:
    """Return a function that prepares a rank's stage for training: recomputed blocks, and shards over copies.

    `attention` needs nothing, because scaled_dot_product_attention keeps no matrices. ZeRO 1 shards only the optimizer, which
    6.2 measures, so it is left out.
    """

    def prepare(stage: Stage, mesh: DeviceMesh) -> None:
        blocks = list(stage.blocks.values())
        for block in blocks[:: {"all": 1, "every-2": 2}.get(plan.checkpointing, len(blocks) + 1)]:
            if plan.checkpointing in {"all", "every-2"}:
                block.forward = partial(checkpoint, block.forward, use_reentrant=False)
        if is_sharded(plan):
            warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")  # nothing changes it in place
            for module in (*blocks, stage):
                fully_shard(module, mesh=mesh["dp"], reshard_after_forward=plan.zero == 3)

    return prepare


def is_sharded(plan: Plan) -> bool:
    """Return whether the run shards the weights of this plan over its copies."""
    return plan.zero >= 2 and plan.dp > 1 and fully_shard is not None


def run_plan(world: ranks.World, plan: Plan, shape: Shape, single: Reference, flops_of_step: float) -> dict[str, Any]:
    """Train `shape` by the plan, and return the results, compared with those of one process.

    `flops_of_step` are the model's, on all ranks.

    Every rank calls it and gets the same result.
    """
    layout = Layout(plan.dp, plan.pp, plan.tp)
    result = run_layout(world, layout, shape, single, prepare=prepare_stage(plan))
    seconds = bench.percentile(result.seconds, 50)
    speed = flops_of_step / seconds
    tokens = shape.batch_size * shape.length
    return {
        "layout": str(layout), "batch_size": shape.batch_size, "length": shape.length, "micro_batches": plan.micro_batches,
        "checkpointing": plan.checkpointing, "zero": plan.zero if is_sharded(plan) else 0, "ranks": world.size,
        "held_bytes": max(result.weights_bytes), "loss_first": result.losses[0], "loss_last": result.losses[-1],
        "loss_off": max(abs(loss - target) / target for loss, target in zip(result.losses, single.losses, strict=True)),
        "weight_error": result.weight_error, "weights_off_percent": weights_off_percent(result, plan, shape),
        **{f"{name}_bytes": max(sum(size for kind, size in sizes.items() if kind.startswith(name))
                                for sizes in result.message_bytes) for name in ("tp", "pp", "dp", "other")},
        "step_ms": 1e3 * seconds, "tokens_per_s": tokens / seconds,
        "gflop_per_s": speed / 1e9, **rate_speed(world, speed),
        "losses": [{"step": step + 1, "plan": loss, "alone": target}
                   for step, (loss, target) in enumerate(zip(result.losses, single.losses, strict=True))],
    }  # fmt: skip


def weights_off_percent(result: LayoutResult, plan: Plan, shape: Shape) -> float:
    """Return the largest difference between the bytes of weights and the formula, in percent.

    Shards are padded to equal lengths, so they may be a few percent larger.
    """
    layout, shards = Layout(plan.dp, plan.pp, plan.tp), plan.dp if is_sharded(plan) else 1
    places = {rank: stage for stage in range(plan.pp) for rank in result.mesh[:, stage].flatten().tolist()}
    by_formula = [4 * count_weights(shape, layout, places[rank]) / shards for rank in range(layout.size)]
    return max(
        100 * abs(measured_bytes / formula_bytes - 1)
        for measured_bytes, formula_bytes in zip(result.weights_bytes, by_formula, strict=True)
    )


def rate_speed(world: ranks.World, speed: float) -> dict[str, float | None]:
    """Return `speed` as a share of the speed that all ranks together can reach, or None if that speed is unknown.

    On GPUs, the limit is the data sheet's (MFU). On CPUs, it is the measured speed of matrix products.
    """
    if world.device.type == "cuda":
        row = gpus.find(torch.cuda.get_device_name(world.device))
        peak = row and row.peak_tflops("float32")
        mfu = 100 * speed / (peak * 1e12 * world.size) if peak else None
        return {"mfu_percent": mfu, "percent_of_matmul_speed": None, "used_percent": mfu}
    share = 100 * speed / measure_products(world)
    return {"mfu_percent": None, "percent_of_matmul_speed": share, "used_percent": share}


def measure_products(world: ranks.World) -> float:
    """Return the FLOP/s of matrix products by all ranks together. They share the cores as in training."""
    a, b = torch.randn(MATMUL, MATMUL), torch.randn(MATMUL, MATMUL)
    a @ b
    world.wait_for_all()
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < WINDOW_S:
        a @ b
        count += 1
    own_rate = 2 * MATMUL**3 * count / (time.perf_counter() - start)
    return float(world.reduce(own_rate, dist.ReduceOp.SUM))
