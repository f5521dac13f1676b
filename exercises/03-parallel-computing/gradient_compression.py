"""Communication optimisation: gradients sent in fewer bytes, the time that this takes, and the links on which it pays off.

You will learn    what a DDP communication hook is; fp16, bf16 and PowerSGD; why bytes, time and loss must be judged together
You will produce  a row for each hook: bytes really sent, step time, loss after equal steps, link speed below which it pays off
Run it            torchrun --nproc-per-node=2 gradient_compression.py --hidden 512 --batch-size 128     (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           gradient_compression.py                     (on the first node; --node-rank=1 on the second)
Your part         `half_hook` in my_hook.py; predict the bytes of PowerSGD of rank 2 for your own --hidden
Reading           modules/03-parallel-computing/lesson-4-bytes.md, "Sending fewer bytes"
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import compression
import ranks
import torch
import torch.distributed as dist
from bench import say
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

SEED, CLASSES, PIXELS, WARM = 0, 10, 784, 5
HOOKS = {  # how each is registered, and the bytes that it should send for gradients of these shapes
    "none": (default_hooks.allreduce_hook, compression.plain_bytes),  # DDP's default
    "fp16": (default_hooks.fp16_compress_hook, compression.half_bytes),
    "bf16": (default_hooks.bf16_compress_hook, compression.half_bytes),
    "powersgd-1": (powerSGD_hook.powerSGD_hook, lambda shapes: compression.power_sgd_bytes(shapes, 1)),
    "powersgd-2": (powerSGD_hook.powerSGD_hook, lambda shapes: compression.power_sgd_bytes(shapes, 2)),
}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="bytes, time and loss of DDP's communication hooks")
parser.add_argument("--hook", type=str, default="all", choices=["all", *HOOKS], help="the hook to compare with none, or all")
parser.add_argument("--bucket-mb", type=float, default=25.0, help="size of DDP's buckets, MiB: one message or more for each")
parser.add_argument("--start-iteration", type=int, default=5, help="PowerSGD compresses from this step on; at least 2")
parser.add_argument("--batch-size", type=int, default=1024, help="samples of each rank in one step")
parser.add_argument("--hidden", type=int, default=4096, help="width of the two hidden layers")
parser.add_argument("--steps", type=int, default=100, help="steps of each hook")
args = parser.parse_args()
if args.start_iteration < 2:
    parser.error("--start-iteration must be at least 2: error feedback needs the buckets that DDP has after its first step")
if min(args.batch_size, args.hidden) < 1 or not 0 < args.bucket_mb < 1e6 or args.steps < args.start_iteration + 2 * WARM:
    parser.error(f"sizes must be positive, and --steps at least --start-iteration + {2 * WARM}: too few would be compressed")

# --- set-up ------------------------------------------------------------------------------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = False
only_me = [dist.new_group([r]) for r in range(size)][rank]  # every rank makes every group, and keeps its own
source = torch.Generator().manual_seed(SEED)
images = torch.randn(args.batch_size * size, PIXELS, generator=source)
labels = (
    (images @ torch.randn(PIXELS, CLASSES, generator=source)).argmax(dim=1).to(device)
)  # a teacher network gives the labels
images, own_share = images.to(device), slice(args.batch_size * rank, args.batch_size * (rank + 1))
sent_bytes, sent_calls, all_reduce = 0, 0, dist.all_reduce


def counting_all_reduce(tensor: torch.Tensor, *arguments, **kwargs):
    """Count the bytes that a hook sends, then send them as usual. Hooks send only with all_reduce."""
    global sent_bytes, sent_calls
    sent_bytes, sent_calls = sent_bytes + tensor.numel() * tensor.element_size(), sent_calls + (tensor.numel() > 0)
    return all_reduce(tensor, *arguments, **kwargs)


dist.all_reduce = counting_all_reduce


def one_bucket_at_a_time(hook):
    """Send one bucket at a time, for PowerSGD over gloo. It sends again when an answer has arrived. Gloo's few threads both
    send and answer, so two buckets at the same time would deadlock. NCCL has no such threads."""

    def patient(state, bucket):
        (future := hook(state, bucket)).wait()
        return future

    return patient


def why_not(name: str) -> str | None:
    """Return why this hook cannot run here, or None. The result is the same on every rank."""
    reason = None
    if name == "bf16" and device.type != "cuda":
        reason = "DDP accepts this hook with NCCL only"
    elif name == "bf16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        reason = "this GPU only emulates bf16"
    return next((answer for answer in world.gather(reason) if answer), None)


# --- one training run: the same model and data every time, only the hook differs --------------------------------------------
def train(name: str, group: dist.ProcessGroup) -> dict[str, object]:
    torch.manual_seed(SEED)
    width = args.hidden
    layers = (nn.Linear(PIXELS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CLASSES))
    model = DistributedDataParallel(nn.Sequential(*layers).to(device), process_group=group, bucket_cap_mb=args.bucket_mb)
    state, hook = group, HOOKS[name][0]
    if name.startswith("powersgd"):  # by default it waits 1,000 steps, and a short run would compress nothing
        state = powerSGD_hook.PowerSGDState(group, int(name[-1]), start_powerSGD_iter=args.start_iteration)
        hook = hook if device.type == "cuda" else one_bucket_at_a_time(hook)
    model.register_comm_hook(state, hook)
    optimizer, losses, seconds, bytes_of, calls_of = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9), [], [], [], []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images[own_share]), labels[own_share])
        loss.backward()  # here the hook gets each bucket of gradients as soon as it is complete
        optimizer.step()
        losses.append(loss.detach())

    for _ in range(args.steps):
        bytes_before, calls_before = sent_bytes, sent_calls
        seconds += bench.time_each(step, device, 1)
        bytes_of.append(sent_bytes - bytes_before)
        calls_of.append(sent_calls - calls_before)
    with torch.no_grad():
        loss = nn.functional.cross_entropy(model.module(images), labels).item()
    return {
        "loss": loss, "losses": torch.stack(losses).tolist(), "seconds": seconds[args.start_iteration + WARM :],
        "bytes": bytes_of, "calls": calls_of[-1], "weights": ranks.flat(model.parameters()),
        "shapes": [tuple(weight.shape) for weight in model.parameters()],
    }  # fmt: skip


def row_of(name: str) -> dict[str, object]:
    everyone = train(name, dist.group.WORLD)
    single_run = train(name, only_me)  # a group of one: the hook compresses as usual, but nothing has to be sent
    step_s, alone_s = world.slowest(everyone["seconds"]), world.slowest(single_run["seconds"])
    curve = (world.reduce(everyone["losses"], dist.ReduceOp.SUM) / size).tolist()
    curves.extend({"hook": name, "step": number, "loss": loss} for number, loss in enumerate(curve, 1))
    say(f"rank {rank}: {name}: {everyone['bytes'][0]:,} bytes in the first step, {everyone['bytes'][-1]:,} in the last")
    return {
        "hook": name, "bytes_first_step": everyone["bytes"][0], "bytes_per_step": everyone["bytes"][-1],
        "bytes_by_formula": HOOKS[name][1](everyone["shapes"]), "messages_per_step": everyone["calls"],
        **bench.spread_ms(step_s), "without_network_ms": bench.percentile(alone_s, 50) * 1e3, "loss_after": everyone["loss"],
        "parameters": everyone["weights"].numel(), "parameter_difference": world.difference(everyone["weights"]),
    }  # fmt: skip


curves: list[dict[str, object]] = []
hook_names = list(HOOKS) if args.hook == "all" else list(dict.fromkeys(["none", args.hook]))
left_out = [{"hook": name, "reason": reason} for name in hook_names if (reason := why_not(name))]
rows = [row_of(name) for name in hook_names if name not in {missing["hook"] for missing in left_out}]
hosts = world.gather(bench.node_label())

# --- the record: saved bytes, and the time that saving them took -----------------------------------------------------------
if rank == 0:
    for row in rows:
        row.update(compression.judge(row, rows[0], size))
    of_rank_1 = next((row for row in rows if row["hook"] == "powersgd-1"), {})
    metrics = {
        **vars(args), "backend": dist.get_backend(), "hosts": hosts, "hooks": rows, "left_out": left_out, "curves": curves,
        "loss_before": curves[0]["loss"], "worst_loss": max(row["loss_after"] for row in rows),
        "plain_communication_ms": rows[0]["communication_ms"], "plain_ratio": rows[0]["communication_per_compute"],
        "power_sgd_bytes": of_rank_1.get("bytes_per_step"), "power_sgd_times_smaller": of_rank_1.get("times_smaller"),
    }  # fmt: skip
    titles = {"hook": "hook", "bytes_per_step": "bytes a step", "times_smaller": "x smaller", "messages_per_step": "messages"}
    titles |= {"median_ms": "step ms", "compressing_ms": "compressing ms", "communication_ms": "communication ms"}
    bench.say_table(rows, titles | {"pays_below_gbps": "pays below Gbit/s", "loss_after": "loss after"})
    for missing in left_out:
        say(f"{missing['hook']} left out: {missing['reason']}")
    if device.type == "cpu":
        say("Bytes and losses hold anywhere. The times do not: compressing and sending both use the cores that train.")
    path = bench.write_metrics("gradient_compression/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
