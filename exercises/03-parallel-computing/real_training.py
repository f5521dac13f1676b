"""Real training: a convolutional network on 32x32 pictures, trained by one worker and then by all, in one run.

You will learn    what a second GPU changes in a whole training run, in time and in accuracy; why strong scaling takes
                  exactly the same steps as one worker, and weak scaling does not
You will produce  training time, samples/s, speed-up, efficiency and accuracy of each way; metrics.json, a line per epoch
Run it            torchrun --nproc-per-node=2 real_training.py --batch-size 64 --images 2048 --width 8       (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           real_training.py --data /data/mnist         (on the first node; --node-rank=1 on the second)
Your part         my_speedup.py, from the raw times of this run to a speed-up; then change `build`, the width and the batch
Reading           modules/03-parallel-computing/lesson-2-training.md, "Strong and weak scaling" and "A whole run"
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import pictures
import ranks
import raw_times
import torch
import torch.distributed as dist
from bench import say
from ranks import flat
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

SEED, FIRST = 0, 8  # rounding errors grow from step to step; in the first few steps they are small

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a CNN trained by one worker and by all, strong and weak scaling")
parser.add_argument("--batch-size", type=int, default=256, help="pictures in one step of one worker")
parser.add_argument(
    "--images", type=int, default=16384, help="pictures to train on; an additional quarter of this number is held out"
)
parser.add_argument("--epochs", type=int, default=3, help="passes over the pictures")
parser.add_argument("--width", type=int, default=64, help="channels of the first layer; the others have twice as many")
parser.add_argument("--data", type=str, default="", help="folder with a real data set in MNIST's format; empty: generated")
args = parser.parse_args()
if min(args.batch_size, args.images, args.epochs, args.width) < 1:
    parser.error("every number must be at least 1")

part = own_part.Process("my_speedup.py") if os.environ.get("RANK", "0") == "0" else None  # your part reads times on rank 0

# --- set-up: join the others; all ranks need the same pictures, or none begins -------------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False  # float32 means float32, on every GPU
torch.backends.cudnn.deterministic = True  # two training runs are compared loss by loss
rank_batch = max(1, args.batch_size // size)  # pictures of one rank in strong scaling
batch = rank_batch * size  # of one worker alone: the batch size, cut so that it divides among the ranks
least_images, problem = max(5, math.ceil(batch * size * 5 / 4)), None  # a batch of each rank, and a fifth more to hold out
image_count = max(least_images, args.images * 5 // 4)
try:
    images, labels = (
        pictures.read_folder(args.data, image_count, least_images) if args.data else pictures.generate(image_count, SEED)
    )
except pictures.NoPictures as error:
    problem = str(error)
world.give_up_together(problem)
sample = images[:: max(1, len(images) // 64)]
data_sets = len(set(world.gather(ranks.checksum(torch.cat([sample.flatten(), labels.float()])))))
held_out = len(images) // 5
images, labels, classes = images.to(device), labels.to(device), int(labels.max()) + 1
tests, answers, train = images[-held_out:], labels[-held_out:], range(len(images) - held_out)
most_frequent = 100 * answers.bincount().max().item() / held_out
say(f"rank {rank} of {size} on {bench.node_label()} ({device}): {len(train):,} pictures to train on, {held_out:,} held out")


def build() -> nn.Module:
    """Return the model: a convolution, a ReLU and a max-pooling, three times, then a linear layer. It has no BatchNorm,
    because that would make a result depend on its batch."""
    torch.manual_seed(SEED)
    layers, channels = [], [images.shape[1], args.width, 2 * args.width, 2 * args.width]
    for inputs, outputs in itertools.pairwise(channels):
        layers += [nn.Conv2d(inputs, outputs, kernel_size=3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels[-1] * 4 * 4, classes)).to(device)


def batches(workers: int, worker: int, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield this worker's share of each batch, epoch after epoch. The n-th batches of all workers together contain the
    same samples as the n-th batch of a training with a single worker."""
    sampler = DistributedSampler(train, num_replicas=workers, rank=worker, seed=SEED, drop_last=True)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        share = torch.tensor(list(sampler), device=device)
        for begin in range(0, len(share) - count + 1, count):
            places = share[begin : begin + count]
            yield images[places], labels[places]


def evaluate(model: nn.Module) -> tuple[float, float]:
    """Return the loss and the accuracy in percent on the held-out pictures."""
    with torch.no_grad():
        scores = torch.cat([model(sample) for sample in tests.split(1024)])
    return cross_entropy(scores, answers).item(), 100 * (scores.argmax(dim=1) == answers).float().mean().item()


# --- the experiment: training runs from the same start, the first by one worker alone ------------------------------------
def training(case: str, workers: int, count: int) -> dict:
    """Train a new model with `count` pictures per worker and step. Return its times, its losses and its accuracy."""
    network, worker, steps = build(), rank if workers > 1 else 0, len(train) // (workers * count)
    ids = [device] if device.type == "cuda" else None
    model = network if case == "1 worker" else DistributedDataParallel(network, device_ids=ids)

    def step() -> None:
        x, y = next(source)
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    for warm in (False, True):  # first some steps that set up memory and connections; then a new model
        network.load_state_dict(build().state_dict())
        optimizer, source = torch.optim.Adam(model.parameters(), lr=0.003), batches(workers, worker, count)
        losses, seconds = [], []
        bench.time_each(step, device, 0 if warm else min(3, steps))
    for epoch in range(args.epochs):
        seconds += bench.time_each(step, device, steps)
        loss = torch.stack(losses[-steps:]).mean().item()
        say(f"{case:<18} rank {rank}  epoch {epoch + 1}/{args.epochs}  loss {loss:.4f}  {sum(seconds):.2f} s")
    loss_after, accuracy = evaluate(network)
    return {
        "case": case, "ranks": workers, "batch_per_rank": count, "steps": len(losses), "train_s": sum(seconds),
        "loss_after": loss_after, "accuracy_percent": accuracy, "seconds": seconds,
        "losses": torch.stack(losses).double(), "weights": flat(network.parameters()),
    }  # fmt: skip


def compute_first_losses() -> torch.Tensor:
    """Return the first losses of one worker that computes each batch in the shares of the ranks, one after another.

    Strong scaling must have the same losses, except for rounding. A batch in one piece would not be comparable on a GPU,
    because cuDNN may choose a different algorithm for a different size.
    """
    network, losses = build(), []
    optimizer = torch.optim.Adam(network.parameters(), lr=0.003)
    for x, y in itertools.islice(batches(1, 0, batch), FIRST):
        optimizer.zero_grad(set_to_none=True)
        shares = [cross_entropy(network(x[share::size]), y[share::size]) / size for share in range(size)]
        torch.stack(shares).sum().backward()
        optimizer.step()
        losses.append(torch.stack(shares).sum().detach())
    return torch.stack(losses).double()


loss_before, _ = evaluate(build())
results = [training("1 worker", 1, batch)] if rank == 0 else []
world.wait_for_all()  # the other ranks are idle while rank 0 trains
differences = []
for case, count in [(f"{size} workers, strong", rank_batch), (f"{size} workers, weak", batch)][: min(size, 2)]:
    result = training(case, size, count)
    result["train_s"], *result["seconds"] = world.slowest([result["train_s"], *result["seconds"]])
    result["losses"] = world.reduce(result["losses"], dist.ReduceOp.SUM) / size  # of all ranks together
    differences.append(world.difference(result["weights"]))
    results.append(result)

# --- raw times of every rank, from cold, for your part ---------------------------------------------------------------------
alone = raw_times.make_training(1, batch, raw_times.record(build(), batches(1, 0, batch), device, 0) if rank == 0 else [])
world.wait_for_all()
together = {}
for case, count in [(f"{size} workers, strong", rank_batch), (f"{size} workers, weak", batch)] if size > 1 else []:
    model = DistributedDataParallel(build(), device_ids=[device] if device.type == "cuda" else None)
    own_times = raw_times.record(model, batches(size, rank, count), device, rank)
    together[case] = raw_times.make_training(size, count, itertools.chain.from_iterable(world.gather(own_times)))
has_partner = part and size > 1
outcome = part.run(None, "raw_times:compare_all", alone=alone, together=together) if has_partner else own_part.Outcome("open")

# --- the record ----------------------------------------------------------------------------------------------------------
if rank == 0:
    gap = (results[1]["losses"] - results[0]["losses"]).abs().max().item()
    first = compute_first_losses()
    first_gap = (results[1]["losses"][: len(first)] - first).abs().max().item()
    rows, epochs_done = [], []
    for result in results if size > 1 else results[:1]:  # speed-up S = samples/s over one worker's; efficiency E = S / n
        images_per_s = result["ranks"] * result["batch_per_rank"] * result["steps"] / result["train_s"]
        speedup = images_per_s / rows[0]["samples_per_s"] if rows else 1.0
        row = {
            "samples_per_s": images_per_s,
            "speedup": speedup,
            "efficiency_percent": 100 * speedup / result["ranks"],
            "waiting_percent": None,
        }
        summary = {key: value for key, value in result.items() if key not in {"seconds", "losses", "weights"}}
        rows.append(summary | bench.spread_ms(result["seconds"]) | row)
        means = enumerate(result["losses"].reshape(args.epochs, -1).mean(dim=1).tolist(), start=1)
        epochs_done += [{"case": result["case"], "epoch": epoch, "loss": loss} for epoch, loss in means]
    own_rows = raw_times.make_rows(outcome, together)
    accuracy_gap = rows[2]["accuracy_percent"] - rows[0]["accuracy_percent"] if size > 1 else None
    metrics = {
        **vars(args), "backend": dist.get_backend(), "pictures": args.data or "generated", "classes": classes,
        "trained_on": len(train), "held_out": held_out, "data_sets": data_sets, "most_frequent_percent": most_frequent,
        "parameters": results[0]["weights"].numel(), "comparison": rows, "compared": rows + own_rows,
        "own": {"state": outcome.state, "result": raw_times.describe(outcome, alone, together)},
        "weak_accuracy_gap": accuracy_gap, "epochs_done": epochs_done, "loss_before": loss_before,
        "first_losses_gap": first_gap, "parameter_differences_across_ranks": differences,
        "strong_speedup": rows[1]["speedup"] if size > 1 else None,
        "peak_gpu_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }  # fmt: skip
    titles = {"case": "case", "batch_per_rank": "batch a worker", "steps": "steps", "train_s": "training s", "speedup": "x"}
    bench.say_table(rows + own_rows, titles | {"efficiency_percent": "efficiency %", "accuracy_percent": "accuracy %"})
    if outcome.state == "open":
        say("Once you have written my_speedup.py, a run with several workers has rows with your speed-ups, from its raw times.")
    elif outcome.state == "failed":
        say(f"Your part failed: {outcome.text}")
    say(f"strong scaling and one worker: losses differ by {first_gap:.0e} in the first {FIRST} steps, by {gap:.0e} in all")
    if device.type == "cpu" and bench.is_on_one_computer():
        say("On one computer the workers share its cores: what was learned is meaningful, the speed-up is not.")
    path = bench.write_metrics("real_training/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
