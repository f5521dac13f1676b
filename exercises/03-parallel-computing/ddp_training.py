"""Data parallel training: every rank trains on its own share of the data, and all ranks have the same model.

You will learn    what DistributedSampler and DistributedDataParallel do; how to prove that ranks agree; how to time a
                  speed-up fairly (strong and weak scaling); how much of a step is communication; four ways to send gradients
You will produce  a line per epoch and rank; metrics.json with losses, proofs of agreement, and the comparison with one rank
Run it            python ddp_training.py --batch-size 128 --hidden 512 --steps 30 --samples 4096    (a world of one)
                  torchrun --nproc-per-node=2 ddp_training.py --batch-size 128 --hidden 512         (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           ddp_training.py                 (on the first node; --node-rank=1 on the second)
Your part         my_ddp.py, your own DDP, which this run trains with; then change the batch size and `build` in ddp_ways.py
Reading           modules/03-parallel-computing/lesson-2-training.md, "DistributedDataParallel" and "Strong and weak scaling"
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node the two are beside this file

import bench
import ddp_ways
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from ranks import flat
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

SEED, CLASSES = ddp_ways.SEED, ddp_ways.CLASSES
SLACK = 1.1  # how much longer a step may be than computing and then sending: medians of three measurements differ

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="DDP training with proofs of agreement and a fair comparison")
parser.add_argument("--batch-size", type=int, default=1024, help="samples per rank and step")
parser.add_argument("--hidden", type=int, default=1024, help="width of the hidden layer")
parser.add_argument("--epochs", type=int, default=3, help="passes over the training set")
parser.add_argument("--samples", type=int, default=16384, help="training set of all ranks; at least enough for one step of all")
parser.add_argument("--steps", type=int, default=100, help="timed steps of each measurement, after warm-up steps")
args = parser.parse_args()
if min(vars(args).values()) < 1:
    parser.error("every value must be at least 1")

part = own_part.Process("my_ddp.py")  # your DDP runs in a separate process, so it cannot disturb this one

begin_of_run = time.perf_counter()

# --- set-up: join the others; the same data everywhere, with something to learn; a model ---------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
images, labels = ddp_ways.make_samples(max(args.samples, args.batch_size * size))  # on every rank; the sampler divides them


def build(*, parallel: bool) -> nn.Module:
    model = ddp_ways.build(args.hidden, device)
    return DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None) if parallel else model


def learning_rate() -> float:
    return ddp_ways.learning_rate(args.batch_size * size, args.hidden)


def new_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=learning_rate(), momentum=0.9)


def backward(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    model.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    loss.backward()  # under DDP each bucket of gradients is averaged over all ranks as soon as it is complete
    return loss.detach()


def whole_loss(model: nn.Module) -> float:
    with torch.no_grad():
        return nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).item()


# --- proof: the average of all shares' gradients is the gradient of the whole batch --------------------------------------
say(f"rank {rank} of {size} on {bench.node_label()} ({device}): {args.batch_size} of {args.batch_size * size} samples per step")
model, own_share = build(parallel=True), slice(args.batch_size * rank, args.batch_size * (rank + 1))
backward(model, images[own_share], labels[own_share])
averaged = flat(weight.grad for weight in model.parameters())
gradient_difference, gradient_error = world.difference(averaged), None
if rank == 0:
    single, whole = build(parallel=False), slice(args.batch_size * size)
    backward(single, images[whole], labels[whole])
    reference = flat(weight.grad for weight in single.parameters())
    gradient_error = ((averaged - reference).abs().max() / reference.abs().max()).item()
    say(f"rank 0: DDP's gradient differs from the full-batch gradient by {gradient_error:.1e} (relative)")

# --- training: each rank on its own share of every epoch -------------------------------------------------------------------
sampler = DistributedSampler(images, num_replicas=size, rank=rank, seed=SEED, drop_last=True)
numbered = TensorDataset(torch.arange(len(images)), images, labels)  # each sample has its number, to record who saw it when
loader = DataLoader(numbered, batch_size=args.batch_size, sampler=sampler)
optimizer, epochs, orders, loss_before = new_optimizer(model), [], [], whole_loss(model.module)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)  # without it every epoch would see the same order
    begin, losses, order = time.perf_counter(), [], []
    for sample_numbers, x, y in loader:
        order.append(sample_numbers)
        losses.append(backward(model, x, y))
        optimizer.step()
    loss = torch.stack(losses).mean().item()  # reading a value waits for the GPU, so the clock below is right
    seconds = time.perf_counter() - begin
    say(f"epoch {epoch + 1}/{args.epochs}  rank {rank}  loss {loss:.4f} on my {len(sampler):,} samples  {seconds:.2f} s")
    orders.append(torch.cat(order).tolist())
    mean = world.reduce(loss, dist.ReduceOp.SUM).item() / size
    epochs.append({"epoch": epoch + 1, "loss": mean, "seconds": world.slowest([seconds])[0]})
loss_after, weights = whole_loss(model.module), flat(model.parameters())
parameter_difference = world.difference(weights)
shares, checksums = world.gather(orders[-1]), world.gather(ranks.checksum(weights))
# The order of few samples may repeat by chance.
repeated = sum(order == orders[0] for order in orders[1:]) if args.epochs > 1 and len(orders[0]) > 7 else None


# --- the comparison: fresh models, warm steps, one rank alone first ----------------------------------------------------------
def time_steps(model: nn.Module, batch: int) -> list[float]:
    optimizer, x, y = new_optimizer(model), images[:batch].to(device), labels[:batch].to(device)

    def step() -> None:
        backward(model, x, y)
        optimizer.step()

    bench.time_each(step, device, max(5, args.steps // 5))  # the first steps set up memory, buckets and connections
    return bench.time_each(step, device, args.steps)


rank_batch = max(1, args.batch_size // size)  # strong scaling: the batch of one rank, divided
alone_s = time_steps(build(parallel=False), args.batch_size) if rank == 0 else []
world.wait_for_all()  # the other ranks are idle while rank 0 measures
weak_s = world.slowest(time_steps(build(parallel=True), args.batch_size))
strong_s = world.slowest(time_steps(build(parallel=True), rank_batch))
with (silent := build(parallel=True)).no_sync():  # the same steps without AllReduce: the difference is communication
    own_s = time_steps(silent, args.batch_size)  # each rank alone: this shows a slow rank; above, all wait for it
buffer = torch.zeros(sum(weight.numel() for weight in silent.parameters()), device=device)  # as large as all gradients
allreduce_s = world.slowest(
    bench.time_calls(lambda: dist.all_reduce(buffer), device, budget_s=0.2, agree=lambda value: world.slowest([value])[0])
)
silent_s, own_ms = world.slowest(own_s), world.gather(1e3 * sum(own_s) / len(own_s))
nodes = world.gather(bench.node_label())

# --- four ways to send the same gradients of a deep model; then your DDP, which trains and sends them as well -----------------
shape = {"hidden": args.hidden, "batch": args.batch_size, "steps": args.steps}
messages_ratio, log = ddp_ways.time_messages(world, args.hidden), ddp_ways.count_all_reduces()
ways = [ddp_ways.measure_way(world, case, way, log, **shape) for case, way in ddp_ways.WAYS.items()]
limit_s = 60 + 5 * (time.perf_counter() - begin_of_run)
outcome = part.run(world, "ddp_ways:train_and_measure", samples=len(images), epochs=args.epochs, **shape, limit_s=limit_s)
own_result = outcome.results[0] if outcome.state == "ran" else {"rows": [], "loss_after": None}

# --- the record --------------------------------------------------------------------------------------------------------------
if rank == 0:
    cases = [("1 rank", 1, args.batch_size, alone_s)]
    if size > 1:
        cases += [(f"{size} ranks, weak", size, args.batch_size, weak_s), (f"{size} ranks, strong", size, rank_batch, strong_s)]
    rows = [{"case": case, "ranks": n, "batch_per_rank": batch, **bench.spread_ms(s)} for case, n, batch, s in cases]
    for row in rows:  # speed-up S = samples/s of n ranks over samples/s of one; efficiency E = S / n
        row["samples_per_s"] = row["ranks"] * row["batch_per_rank"] / (row["median_ms"] / 1e3)
        row["speedup"] = row["samples_per_s"] / rows[0]["samples_per_s"]
        row["efficiency_percent"] = 100 * row["speedup"] / row["ranks"]
    two_gpus = device.type == "cuda" and size == 2
    # A difference below zero is only noise: communication is too short to be measured.
    exposed = max(0.0, 100 * (1 - bench.percentile(silent_s, 50) / bench.percentile(weak_s, 50))) if size > 1 else None
    one_by_one = SLACK * (bench.percentile(silent_s, 50) + bench.percentile(allreduce_s, 50))  # a step without overlap
    metrics = {
        **vars(args), "backend": dist.get_backend(), "parameters": weights.numel(), "gradient_bytes": 4 * weights.numel(),
        "learning_rate": learning_rate(), "epochs_done": epochs,
        "loss_before": loss_before, "loss_after": loss_after, "loss_of_guessing": math.log(CLASSES),
        "gradient_difference_across_ranks": gradient_difference, "gradient_error_to_whole_batch": gradient_error,
        "parameter_difference_across_ranks": parameter_difference, "parameter_checksums": checksums,
        "share_samples": [len(share) for share in shares],
        "samples_shared": sum(map(len, shares)) - len(set().union(*shares)), "epochs_in_the_order_of_the_first": repeated,
        "ways": ways + own_result["rows"], "one_by_one_over_flat": messages_ratio if size > 1 else None,
        "ways_error": max(row["gradient_error"] for row in ways),
        "own": {
            "state": outcome.state, "loss_after": own_result["loss_after"],
            "result": ddp_ways.describe(outcome, size),
        },
        "comparison": rows, "exposed_communication_percent": exposed,
        "allreduce_ms": 1e3 * bench.percentile(allreduce_s, 50),
        "least_efficiency_percent": 100 * bench.percentile(alone_s, 50) / one_by_one,
        "weak_efficiency_percent": rows[1]["efficiency_percent"] if size > 1 else None,
        "own_steps": [{"rank": r, "node": node, "mean_ms": ms} for r, (node, ms) in enumerate(zip(nodes, own_ms, strict=True))],
        "rule_of_thumb": [  # for two T4s, one worker each; only two GPUs can be compared with it
            {"what": label, "expected": reference, "ideal": ideal, "measured": measured if two_gpus else None}
            for label, reference, ideal, measured in (
                ("speed-up of 2 GPUs, weak", 1.8, 2.0, rows[min(1, size - 1)]["speedup"]),
                ("scaling efficiency (%)", 90.0, 100.0, rows[min(1, size - 1)]["efficiency_percent"]),
                ("exposed communication (%)", 10.0, 0.0, exposed),
            )
        ],
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }  # fmt: skip
    titles = {"case": "case", "batch_per_rank": "batch per rank", "median_ms": "step ms", "p20_ms": "p20", "p80_ms": "p80"}
    bench.say_table(rows, titles | {"samples_per_s": "samples/s", "speedup": "x", "efficiency_percent": "efficiency %"})
    titles = {"case": "way", "messages": "messages", "bytes": "bytes", "early_percent": "% begun early"}
    bench.say_table(metrics["ways"], titles | {"median_ms": "step ms", "p20_ms": "p20", "p80_ms": "p80"})
    if outcome.state == "open":
        say("Your DDP is open: once you have written my_ddp.py, it trains here, and the plot shows it next to the four ways.")
    elif outcome.state == "failed":
        say(f"Your DDP failed: {outcome.text}")
    if exposed is not None:
        say(f"exposed communication: {exposed:.0f} % of a weak step, for {metrics['gradient_bytes']:,} bytes of gradients")
        floor = f"{metrics['least_efficiency_percent']:.0f} %"
        say(f"alone, their AllReduce takes {metrics['allreduce_ms']:.2f} ms; without overlap the efficiency would be {floor}")
    say(f"loss {loss_before:.4f} before, {loss_after:.4f} after {args.epochs} epochs; guessing is {math.log(CLASSES):.4f}")
    if device.type == "cpu":
        reason = "ranks on one computer share its cores and its memory" if bench.is_on_one_computer() else "a GPU is far faster"
        say(f"On CPUs correctness is meaningful, timings are not: {reason}.")
    path = bench.write_metrics("ddp_training/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
