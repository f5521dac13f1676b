"""DDP on one machine: several copies of one script, each with its own samples, train one model together.

You will learn    what a rank is; how DistributedSampler splits the data, and how to check it; what is different on each
                  rank (samples, loss, local gradient) and what is not (averaged gradient, weights)
You will produce  a log for each rank; its samples in shard_rank0.csv, shard_rank1.csv, ...; side_by_side.txt; metrics.json
Run it            python local_ddp.py                                                   (a world of one)
                  torchrun --nproc-per-node=2 local_ddp.py                              (two ranks, all in one window)
                  torchrun --nproc-per-node=2 --redirects 3 --log-dir logs local_ddp.py (a log for each rank)
Your part         write in my_shares.py what DistributedSampler does: a second training run uses your shares
Reading           modules/00-local-foundations/lesson-2-ranks.md, "The same script, several times"
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node the two are beside this file

import bench
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from ranks import flat
from sampling import CLASSES, LR, SEED, build, count, count_seen, find_fault, loss_of, make_samples
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

# --- knobs (the launcher decides on the number of ranks) --------------------------------------------------------------
parser = argparse.ArgumentParser(description="data parallel training on one machine, with everything recorded")
parser.add_argument("--epochs", type=int, default=3, help="passes over the data")
parser.add_argument("--samples", type=int, default=512, help="samples in all, divided among the ranks")
parser.add_argument("--batch-size", type=int, default=32, help="samples that a rank uses in one step")
args = parser.parse_args()
if min(vars(args).values()) < 1:
    parser.error("every value must be at least 1")

# --- set-up: who am I, and the same data on every rank ----------------------------------------------------------------
if torch.cuda.device_count() < int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
    os.environ["GPUCOURSE_BACKEND"] = "gloo"  # two ranks cannot share a GPU under NCCL; CPUs have room for any number
learner_part = own_part.Process("my_shares.py")
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
features, labels = make_samples(args.samples)
numbers = torch.arange(args.samples)  # each sample includes its number, so that we can tell which rank saw it
say(f"rank {rank} of {size}: process {os.getpid()} on {bench.node_label()} ({device})")


def loss_on(model: nn.Module, first: int) -> float:
    with torch.no_grad():
        return loss_of(model, features[:first], labels[:first]).item()


def fingerprint(model: nn.Module) -> str:
    return ranks.checksum(flat(model.parameters()))[:8]


# --- DDP: rank 0's weights go to all ranks ----------------------------------------------------------------------------
single_model = build(SEED + rank, device)  # different weights on every rank, on purpose: see what DDP does about it
fingerprint_alone = fingerprint(single_model)
model = DistributedDataParallel(single_model, device_ids=[device] if device.type == "cuda" else None)
wrapped = fingerprint(model.module)
say(f"rank {rank}: I made the weights {fingerprint_alone}, and DDP gave me {wrapped}")
optimizer = torch.optim.SGD(model.parameters(), lr=LR)
sampler = DistributedSampler(numbers, num_replicas=size, rank=rank, seed=SEED)
loader = DataLoader(TensorDataset(numbers, features, labels), batch_size=args.batch_size, sampler=sampler)

# --- training: this rank's samples, loss and gradient; then the averaged gradient -------------------------------------
begun_s = time.perf_counter()
shares: list[list[int]] = []
steps: list[dict[str, object]] = []
deviations: list[list[float]] = []  # of each step: between ranks after averaging; from the mean; between ranks before
loss_before = loss_on(model.module, args.samples)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)  # a new order in every epoch, the same on all ranks; without it each epoch has the same shares
    shares.append([])
    for sample_numbers, x, y in loader:
        shares[-1] += sample_numbers.tolist()
        loss = loss_of(model.module, x, y)  # without DDP: this gradient stays on this rank
        local_gradients = flat(torch.autograd.grad(loss, list(model.module.parameters())))
        optimizer.zero_grad()
        loss_of(model, x, y).backward()  # with DDP: the gradients of all ranks, averaged
        mean_gradients = flat(weight.grad for weight in model.parameters())
        optimizer.step()
        mean = world.reduce(local_gradients, dist.ReduceOp.SUM) / size
        error = ((mean_gradients - mean).abs().max() / mean.abs().max()).item()
        deviations.append([world.difference(mean_gradients), error, world.difference(local_gradients)])
        steps.append({"rank": rank, "step": len(steps) + 1, "epoch": epoch + 1, "loss": loss.item()})
        steps[-1] |= {"gradient_mine": local_gradients.norm().item(), "gradient_ours": mean_gradients.norm().item()}
        first = " ".join(f"{number:>4}" for number in sample_numbers[:4].tolist())
        say(
            f"epoch {epoch + 1}  step {len(steps):>3}  rank {rank}  samples {first} ...  loss {loss.item():.4f}  "
            f"gradient {local_gradients.norm():.4f}, averaged {mean_gradients.norm():.4f}"
        )

# --- what each rank leaves behind -------------------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
with (out / f"shard_rank{rank}.csv").open("w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["epoch", "rank", "sample"])
    writer.writerows([epoch + 1, rank, number] for epoch, share in enumerate(shares) for number in share)
weights = flat(model.parameters())
parameter_difference = world.difference(weights)
probe = min(args.batch_size, args.samples)
same_samples_loss = loss_on(model.module, probe)
loss_difference = world.difference(torch.tensor([same_samples_loss], dtype=torch.float64, device=device))
say(f"rank {rank}: on samples 0 to {probe - 1}, which no sampler chose, my loss is {same_samples_loss:.6f}")
row = {
    "rank": rank, "pid": os.getpid(), "host": bench.node_label(), "samples": len(shares[0]),
    "first_samples": " ".join(map(str, shares[0][:4])), "made": fingerprint_alone, "wrapped": wrapped,
    "trained": fingerprint(model.module),
    "loss_first_step": steps[0]["loss"], "loss_last_step": steps[-1]["loss"], "loss_same_samples": same_samples_loss,
}  # fmt: skip
rows, every_share, every_step = world.gather(row), world.gather(shares), world.gather(steps)

# --- your part: the same model, trained on the samples that your my_shares.py chooses ---------------------------------
limit_s = 60 + 5 * (time.perf_counter() - begun_s)
outcome = learner_part.run(world, "sampling:train", limit_s=limit_s, **vars(args))

# --- the record: rank 0 puts the ranks side by side -------------------------------------------------------------------
if rank == 0:
    worst = torch.tensor(deviations).amax(dim=0).tolist()  # a NaN stays one
    local_norm, averaged_norm = (
        sum(step[key] for of_rank in every_step for step in of_rank) for key in ("gradient_mine", "gradient_ours")
    )
    own_squared = sum(of_rank[0]["gradient_mine"] ** 2 for of_rank in every_step) / size
    averaged_share = every_step[0][0]["gradient_ours"] ** 2 / own_squared  # of the first step
    metrics = {
        **vars(args), "backend": dist.get_backend(), "ranks": rows, "steps": [step for steps in every_step for step in steps],
        **count(every_share, args.samples),
        "gradient_difference_across_ranks": worst[0],
        "gradient_error_to_mean": worst[1], "own_gradient_difference_across_ranks": worst[2],
        "parameter_difference_across_ranks": parameter_difference, "loss_difference_on_same_samples": loss_difference,
        "own_over_averaged_exponent": math.log(local_norm / averaged_norm, size) if size > 1 else None,
        "noise_percent_first_step": 100 * (1 - averaged_share) * size / (size - 1) if size > 1 else None,
        "loss_before": loss_before, "loss_after": loss_on(model.module, args.samples), "loss_of_guessing": math.log(CLASSES),
    }  # fmt: skip
    losses = {"loss_before": metrics["loss_before"], "loss_after": metrics["loss_after"]}
    samplers = [{"sampler": "DistributedSampler", "steps": len(steps), **count(every_share, args.samples), **losses}]
    yours = outcome.results[0] if outcome.state == "ran" else None
    if outcome.state == "open":
        say("my_shares.py is open: once it is written, a second model is trained on your shares, in a row 'yours'")
    elif outcome.state == "failed":
        say(f"no model was trained on your shares: {outcome.text}")
    seen_of_yours = yours.pop("seen") if yours else []
    metrics["seen"] = count_seen(shares, args.batch_size, "DistributedSampler") + seen_of_yours
    metrics["samplers"] = samplers + ([{"sampler": "yours", **yours}] if yours else [])
    metrics["your_shares"] = find_fault(yours) if yours else outcome.text if outcome.state == "failed" else None
    together = [
        {"step": of_rank[0]["step"]}
        | {f"rank {rank_row['rank']}": f"{rank_row['loss']:.4f}" for rank_row in of_rank}
        | {"averaged gradient": " = ".join(sorted({f"{rank_row['gradient_ours']:.6f}" for rank_row in of_rank}))}
        for of_rank in zip(*every_step, strict=True)
    ]
    side_by_side = bench.table(together, {key: key for key in together[0]})
    (out / "side_by_side.txt").write_text(side_by_side + "\n", encoding="utf-8")
    say("\nThe loss of every step, ranks side by side\n" + "\n".join(side_by_side.splitlines()[:10]) + "\n")
    titles = {"rank": "rank", "samples": "samples", "first_samples": "first", "made": "made", "wrapped": "after DDP"}
    bench.say_table(rows, titles | {"trained": "trained", "loss_same_samples": "loss, same samples"})
    bench.say_table(metrics["samplers"], {"sampler": "sampler", "steps": "steps", "samples_missing": "missing",
                                          "samples_twice": "twice", "loss_after": "loss after"})  # fmt: skip
    say(f"The losses differ because the samples do: given the same samples they differ by {loss_difference:g}.")
    path = bench.write_metrics("local_ddp/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
