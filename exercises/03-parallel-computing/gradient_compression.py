"""Communication optimisation: gradients sent in fewer bytes, the time that this takes, and the links on which it pays off.

You will learn    what a DDP communication hook is; fp16, bf16, fp8 and PowerSGD; what tiny gradients lose; why bytes, time
                  and loss must be judged together
You will produce  a row for each hook: bytes really sent, step time, loss after equally many steps, break-even link speed
Run it            torchrun --nproc-per-node=2 gradient_compression.py --hidden 512 --batch-size 128     (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           gradient_compression.py                     (on the first node; --node-rank=1 on the second)
Your part         `half_hook` in my_hook.py, which then trains here like the others
Reading           modules/03-parallel-computing/lesson-4-bytes.md, "Sending fewer bytes"
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import compression
import hooked_training
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

WARM = 5
HOOKS = {  # how each is registered, and the bytes that it should send for gradients of these shapes
    "none": (default_hooks.allreduce_hook, compression.plain_bytes),  # DDP's default
    "fp16": (default_hooks.fp16_compress_hook, compression.half_bytes),
    "bf16": (default_hooks.bf16_compress_hook, compression.half_bytes),
    "fp8-gather": (hooked_training.fp8_gather_hook, compression.byte_bytes),
    "powersgd-1": (powerSGD_hook.powerSGD_hook, lambda shapes: compression.power_sgd_bytes(shapes, 1)),
    "powersgd-2": (powerSGD_hook.powerSGD_hook, lambda shapes: compression.power_sgd_bytes(shapes, 2)),
}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="bytes, time and loss of DDP's communication hooks")
parser.add_argument("--hook", type=str, default="all", choices=["all", *HOOKS], help="the hook to compare with none, or all")
parser.add_argument("--bucket-mb", type=float, default=25.0, help="size of DDP's buckets, MiB: one message or more for each")
parser.add_argument("--start-iteration", type=int, default=5, help="the first step in which PowerSGD compresses; at least 2")
parser.add_argument("--batch-size", type=int, default=1024, help="samples of each rank in one step")
parser.add_argument("--hidden", type=int, default=4096, help="width of the two hidden layers")
parser.add_argument("--steps", type=int, default=100, help="steps of each hook")
args = parser.parse_args()
if args.start_iteration < 2:
    parser.error("--start-iteration must be at least 2: error feedback needs the buckets that DDP has after its first step")
if min(args.batch_size, args.hidden) < 1 or not 0 < args.bucket_mb < 1e6 or args.steps < args.start_iteration + 2 * WARM:
    parser.error(f"sizes must be positive, and --steps at least --start-iteration + {2 * WARM}: too few would be compressed")

# --- set-up ------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_hook.py")  # it waits until the course's own measurements are done
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = False
only_me = [dist.new_group([r]) for r in range(size)][rank]  # every rank makes every group, and keeps its own
setting = {"hidden": args.hidden, "batch_size": args.batch_size, "bucket_mb": args.bucket_mb, "steps": args.steps}
setting["cold"] = args.start_iteration + WARM
counter = hooked_training.count_sent()


def one_bucket_at_a_time(hook):
    """Send one bucket at a time, for PowerSGD over gloo. Its callbacks start further all-reduces and wait for them. Gloo's few
    threads both send and run callbacks, so two buckets at the same time would deadlock. NCCL has no such threads."""

    def patient(state, bucket):
        (future := hook(state, bucket)).wait()
        return future

    return patient


def why_not(name: str) -> str | None:
    """Return the reason if this hook cannot run here, or None. The result is the same on every rank."""
    reason = None
    if name == "bf16" and device.type != "cuda":
        reason = "DDP accepts this hook with NCCL only"
    elif name == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        reason = "this GPU only emulates bf16"
    return next((answer for answer in world.gather(reason) if answer), None)


# --- the same model and data every time, only the hook differs --------------------------------------------------------------
def train(name: str, group: dist.ProcessGroup, scale: float = 1.0) -> dict[str, object]:
    state, hook = group, HOOKS[name][0]
    if name.startswith("powersgd"):  # by default it waits 1,000 steps, and a short run would compress nothing
        state = powerSGD_hook.PowerSGDState(group, int(name[-1]), start_powerSGD_iter=args.start_iteration)
        hook = hook if device.type == "cuda" else one_bucket_at_a_time(hook)
    return hooked_training.train(world, counter, hooked_training.Setting(**setting), hook, state, group, scale=scale)


def row_of(name: str) -> dict[str, object]:
    group_run = train(name, dist.group.WORLD)
    single_run = train(name, only_me)  # a group of one: the hook compresses as usual, but nothing has to be sent
    scales.append(hooked_training.shrink(group_run["first_rms"]))
    tiny = train(name, dist.group.WORLD, scale=scales[0])  # the scale of training without a hook, which runs first
    step_s, alone_s = world.slowest(group_run["seconds"]), world.slowest(single_run["seconds"])
    curve = (world.reduce(group_run["losses"], dist.ReduceOp.SUM) / size).tolist()
    curves.extend({"hook": name, "step": number, "loss": loss} for number, loss in enumerate(curve, 1))
    say(f"rank {rank}: {name}: {group_run['bytes_first_step']:,} bytes in the first step, {group_run['bytes']:,} in the last")
    return {
        "hook": name, "bytes_first_step": group_run["bytes_first_step"], "bytes_per_step": group_run["bytes"],
        "bytes_by_formula": HOOKS[name][1](group_run["shapes"]) + 4 * group_run["calls"] * (name == "fp8-gather"),  # scales
        "messages_per_step": group_run["calls"], "gathers": name == "fp8-gather",
        **bench.spread_ms(step_s), "without_network_ms": bench.percentile(alone_s, 50) * 1e3, "loss_after": group_run["loss"],
        "tiny_loss_after": tiny["loss"], "parameters": group_run["weights"].numel(),
        "parameter_difference": world.difference(group_run["weights"]),
    }  # fmt: skip


curves: list[dict[str, object]] = []
scales: list[float] = []
hook_names = list(HOOKS) if args.hook == "all" else list(dict.fromkeys(["none", args.hook]))
start = time.perf_counter()
left_out = [{"hook": name, "reason": reason} for name in hook_names if (reason := why_not(name))]
rows = [row_of(name) for name in hook_names if name not in {missing["hook"] for missing in left_out}]
hosts = world.gather(bench.node_label())

# --- yours: the same training with the hook of my_hook.py, if it is written --------------------------------------------------
outcome = learner_part.run(
    world, "hooked_training:train_with_own_hook", limit_s=max(60.0, time.perf_counter() - start), **setting
)


def compare_hook(outcome: own_part.Outcome) -> dict[str, object]:
    """Return the row of the learner's hook, compared with training without a hook."""
    if outcome.state != "ran":
        keys = ("bytes_off", "parameter_difference", "loss_off_percent", "tiny_learned_share")
        return {"outcome": outcome.text if outcome.state == "failed" else None, "rows": []} | dict.fromkeys(keys)
    row = outcome.results[0]
    row["losses"] = [sum(losses) / size for losses in zip(*(result["losses"] for result in outcome.results), strict=True)]
    curves.extend({"hook": "yours", "step": number, "loss": loss} for number, loss in enumerate(row.pop("losses"), 1))
    loss_gap_percent = 100 * (row["loss_after"] / rows[0]["loss_after"] - 1)
    row |= {"times_smaller": rows[0]["bytes_per_step"] / max(1, row["bytes_per_step"]), "loss_gap_percent": loss_gap_percent}
    row["bytes_by_formula"] = rows[0]["bytes_per_step"] // 2
    row["wire_bytes"] = compression.count_wire_bytes(row["bytes_per_step"], size)
    return {
        "outcome": "ran", "rows": [row], "bytes_off": row["bytes_per_step"] - row["bytes_by_formula"],
        "parameter_difference": row["parameter_difference"], "loss_off_percent": abs(loss_gap_percent),
        "tiny_learned_share": compute_learned_share(row),
    }  # fmt: skip


def compute_learned_share(row: dict[str, object]) -> float:
    """Return the fall of the loss with tiny gradients, as a share of its fall without a hook."""
    return (curves[0]["loss"] - row["tiny_loss_after"]) / (curves[0]["loss"] - rows[0]["tiny_loss_after"])


# --- the record: saved bytes, and the time that saving them took -----------------------------------------------------------
if rank == 0:
    for row in rows:
        row.update(compression.judge(row, rows[0], size))
    by_name, yours = {row["hook"]: row for row in rows}, compare_hook(outcome)
    metrics = {
        **vars(args), "backend": dist.get_backend(), "hosts": hosts, "hooks": rows, "left_out": left_out, "curves": curves,
        "yours": yours, "compared": [*rows, *yours["rows"]],
        "fp16_tiny_share": compute_learned_share(by_name["fp16"]) if "fp16" in by_name else None,
        "loss_before": curves[0]["loss"], "worst_loss": max(row["loss_after"] for row in rows),
        "plain_communication_ms": rows[0]["communication_ms"],
    }  # fmt: skip
    titles = {"hook": "hook", "bytes_per_step": "bytes a step", "times_smaller": "x smaller", "messages_per_step": "messages"}
    titles |= {"median_ms": "step ms", "compressing_ms": "compressing ms", "communication_ms": "communication ms"}
    titles |= {"pays_below_gbps": "pays below Gbit/s", "loss_after": "loss after", "tiny_loss_after": "with tiny gradients"}
    bench.say_table(metrics["compared"], titles)
    if outcome.state == "open":
        say("my_hook.py is unchanged. Once you write it, the table has a row for a training run with your hook.")
    elif outcome.state == "failed":
        say(f"your hook did not train: {outcome.text}")
    for missing in left_out:
        say(f"{missing['hook']} left out: {missing['reason']}")
    if device.type == "cpu":
        say("Bytes and losses hold anywhere. The times do not: compressing and sending both use the cores that train.")
    path = bench.write_metrics("gradient_compression/1", device, world_size=size, seed=hooked_training.SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
