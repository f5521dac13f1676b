"""ZeRO and FSDP: the same training with weights, gradients and optimizer state whole on every rank, or divided among them.

You will learn    what each stage of ZeRO divides, what it then has to send, and what no stage divides
You will produce  the bytes that each rank holds and sends at each stage, and under plans between the stages, next to your
                  counts; a sharded AdamW
Run it            python zero_stages.py --ranks-per-node=4 --layers=2 --width=64 --length=32 --batch-size=24   (four ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           zero_stages.py                     (a GPU each; on the first node, --node-rank=1 on the second)
Your part         predict what stage 3 sends; then my_count.py (plans) and my_sharded.py (the optimizer)
Reading           modules/06-training-at-scale/lesson-3-zero.md, lesson-4-counting.md
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
import traceback
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import ranks
import torch
import torch.distributed as dist
import virtual_ranks
import zero_plans
import zero_report
from bench import say
from shard_bytes import SentBytes, count_bytes, count_kept_numbers, read_written_bytes, ring_times
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from transformer import Transformer, counting_text
from zero_plans import PARTS
from zero_step import MEASURED

SEED, VOCABULARY, HEAD, COUNTED = 0, 64, 64, 2  # the third step is counted: DDP arranges its buckets in the second
ADAMW = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-6, "weight_decay": 0.01}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="bytes held and sent at the stages of ZeRO")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--stages", type=str, default="0,1,2,3", help="stages of ZeRO to train with, separated by commas")
parser.add_argument("--layers", type=int, default=24, help="layers of the transformer")
parser.add_argument(
    "--width", type=int, default=1024, help=f"numbers that represent a token between two layers; a multiple of {HEAD}"
)
parser.add_argument("--length", type=int, default=256, help="tokens in a sequence")
parser.add_argument(
    "--batch-size", type=int, default=48, help="sequences in a step over all ranks, a multiple of the number of ranks"
)
parser.add_argument("--steps", type=int, default=10, help="steps of each stage")
parser.add_argument(
    "--virtual-ranks",
    type=int,
    default=64,
    help="number of ranks for which the memory of a step is predicted; 0 predicts nothing",
)
args = parser.parse_args()
stages = sorted({int(stage) for stage in args.stages.split(",") if stage.strip() in {"0", "1", "2", "3"}})
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if len(stages) != len(args.stages.split(",")):
    parser.error("--stages must be different numbers from 0 to 3, separated by commas")
if min(args.ranks_per_node, args.layers, args.width, args.length, args.batch_size) < 1 or args.steps <= COUNTED + 1:
    parser.error(f"sizes must be positive, and --steps at least {COUNTED + 2}")
if size < 2:
    parser.error("one rank has nothing to shard: take two nodes (deploy 6 --nodes 2), or --ranks-per-node=2 on CPUs")
if args.width % HEAD:
    parser.error(f"--width ({args.width}) must be a multiple of {HEAD}, the width of a head")
if args.batch_size % size:
    parser.error(f"--batch-size ({args.batch_size}) must be a multiple of the number of ranks, {size}")

# --- set-up ------------------------------------------------------------------------------------------------------------
crew.start(args.ranks_per_node)  # from here on this process is one rank
warnings.filterwarnings("ignore", category=FutureWarning, message=".*deprecated.*")  # newer names for the same collectives
warnings.filterwarnings("ignore", message=".*returned a view tensor.*")
world = ranks.join()
rank, device = world.rank, world.device
torch.backends.cuda.matmul.allow_tf32 = False
if device.type == "cpu":
    torch.set_num_threads(1)
mesh = init_device_mesh(device.type, (size,))


def build() -> Transformer:
    torch.manual_seed(SEED)
    return Transformer(VOCABULARY, args.length, args.width, args.width // HEAD, args.layers)


shapes = [tuple(weight.shape) for weight in build().parameters()]
parameters = sum(torch.Size(shape).numel() for shape in shapes)


def batch(step: int) -> torch.Tensor:
    """Return this rank's share of a step's sequences. In total, the sequences are the same for any number of ranks."""
    source = torch.Generator().manual_seed(1000 + step)
    return counting_text(args.batch_size, args.length, VOCABULARY, source).chunk(size)[rank].to(device)


def divide(stage: int, model: nn.Module) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return the model and its AdamW at a stage of ZeRO, as torch implements it."""
    if stage >= 2:
        virtual_ranks.shard(model, mesh, free_after_forward=stage == 3)
        return model, torch.optim.AdamW(model.parameters(), **ADAMW)
    net = DistributedDataParallel(model, gradient_as_bucket_view=True)
    if stage == 0:
        return net, torch.optim.AdamW(net.parameters(), **ADAMW)
    return net, ZeroRedundancyOptimizer(net.parameters(), torch.optim.AdamW, **ADAMW)


def find_loss(net: nn.Module, text: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(net(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def count_step(net: nn.Module, optimizer: object, text: torch.Tensor) -> tuple[torch.Tensor, dict[str, object]]:
    """Take one step. Return its loss, the most that this rank holds of each kind, and the bytes that it sends."""
    between, written_before = list(net.parameters()), read_written_bytes()
    with SentBytes(size) as sent_bytes:
        loss = find_loss(net, text)
        rank_bytes = {
            "between": count_bytes(between),
            "weights": count_bytes(net.parameters()),
        }  # what forward leaves to backward
        loss.backward()
        rank_bytes["gradients"] = count_bytes(weight.grad for weight in net.parameters())  # before zero_grad removes them
        optimizer.step()
    written_after = read_written_bytes()
    wire = written_after - written_before if written_after is not None and dist.get_backend() == "gloo" else None
    return loss, {
        "held": rank_bytes,
        "calls": dict(sent_bytes.calls),
        "whole": dict(sent_bytes.whole),
        "ring": sent_bytes.ring_bytes,
        "wire": wire,
    }


def train(net: nn.Module, optimizer: object) -> dict[str, object]:
    """Take all steps. Return this rank's losses, the seconds of the steps after the counted one, and the counts."""
    losses, seconds, counts = [], [], {}

    def step(number: int) -> None:
        nonlocal counts
        for weight in net.parameters():
            weight.grad = None
        if number == COUNTED:
            loss, counts = count_step(net, optimizer, batch(number))
        else:
            loss = find_loss(net, batch(number))
            loss.backward()
            optimizer.step()
        losses.append(loss.detach())

    for number in range(args.steps):
        seconds += bench.time_each(lambda: step(number), device, 1)  # noqa: B023  # called at once
    return counts | {"losses": torch.stack(losses).double(), "seconds": seconds[COUNTED + 1 :]}


def measure_peak(call) -> tuple[dict[str, object], int | None]:
    """Return the result of `call`, and its peak of GPU memory on the fullest rank, or None without a GPU."""
    if device.type != "cuda":
        return call(), None
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    baseline = torch.cuda.memory_allocated(device)
    result = call()
    return result, int(world.reduce(torch.cuda.max_memory_allocated(device) - baseline, dist.ReduceOp.MAX).item())


def list_moments(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """Return AdamW's two moments on this rank. Its counters of steps, one number each, are not moments."""
    state = (optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer).state
    return [value for values in state.values() for value in values.values() if torch.is_tensor(value) and value.dim()]


def measure_stage(stage: int) -> dict[str, object]:
    """Return the row of a stage: bytes held and sent, the bytes by torch's own rules, times and losses."""

    def run() -> dict[str, object]:
        net, optimizer = divide(stage, build().to(device))
        result = train(net, optimizer)
        result["held"]["moments"] = count_bytes(list_moments(optimizer))
        return result | {"weights": flatten(net)}

    result, peak = measure_peak(run)
    row = zero_report.describe_stage(stage, world.gather(result["held"]), result, shapes)
    return row | {"wire_bytes": average(result["wire"]), "peak_gpu_memory_bytes": peak} | compare_training(result)


def compare_training(result: dict[str, object]) -> dict[str, object]:
    """Return times, losses over all ranks, and how far losses and weights differ from those of the first trained stage."""
    losses = world.reduce(result["losses"], dist.ReduceOp.SUM) / size
    first.setdefault("losses", losses)
    first.setdefault("weights", result["weights"])
    return {
        **bench.spread_ms(world.slowest(result["seconds"])), "losses": losses.tolist(), "loss": losses[-1].item(),
        "loss_off": (losses - first["losses"]).abs().max().item(),
        "weights_off": world.reduce((result["weights"] - first["weights"]).abs().max().item(), dist.ReduceOp.MAX).item(),
    }  # fmt: skip


def flatten(net: nn.Module) -> torch.Tensor:
    """Return all weights, whole and concatenated, in every rank's CPU memory."""
    whole = (weight.full_tensor() if isinstance(weight, DTensor) else weight for weight in net.parameters())
    return torch.cat([weight.detach().flatten().cpu() for weight in whole])


def average(value: int | None) -> float | None:
    everyone = world.gather(value)
    return None if None in everyone else sum(everyone) / size


def measure_collectives() -> list[dict[str, object]]:
    """Return what a rank sends for each collective, as a multiple of the message's bytes.

    Return this multiple for a ring by formula, and for gloo as counted by Linux.
    """
    whole = torch.zeros((1 << 18) // size * size, device=device)
    own_share = whole[: len(whole) // size].clone()
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole), "all_gather": lambda: dist.all_gather_into_tensor(whole, own_share),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(own_share, whole), "broadcast": lambda: dist.broadcast(whole, 0),
    }  # fmt: skip
    rows = []
    for kind, call in calls.items():
        call()
        written_before = read_written_bytes()
        call()
        written_after = read_written_bytes()
        wire = average(written_after - written_before if written_after is not None and dist.get_backend() == "gloo" else None)
        rows.append({"collective": kind, "ring_times": ring_times(kind, size), "wire_times": wire and wire / whole.nbytes})
    return rows


def measure_sharded() -> tuple[dict[str, object] | None, str]:
    """Run the same training with the learner's optimizer. Return its row, and the error with which it ended on any rank."""
    result, failure = None, None
    try:
        import my_sharded

        model = build().to(device)
        optimizer = my_sharded.ShardedAdamW(list(model.parameters()), **ADAMW)
        result = train(model, optimizer) | {"weights": flatten(model)}
        apart_from = [tensor for weight in model.parameters() for tensor in (weight, weight.grad) if tensor is not None]
        result["kept"] = 4 * count_kept_numbers(optimizer, apart_from)
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
        failure = time.time(), f"{zero_plans.describe(error)} (rank {rank})"
        if not isinstance(error, NotImplementedError):
            traceback.print_exc(file=sys.stdout)
    failures: list[tuple[float, str] | None] = [None] * size
    dist.all_gather_object(failures, failure, group=world.waiting_room)  # after a timeout for a rank that waited in vain
    if any(failures):
        return None, min(filter(None, failures))[1]
    row = zero_report.describe_sharded(world.gather(result["kept"]), result, parameters)
    return row | {"wire_bytes": average(result["wire"])} | compare_training(result), "no error"


# --- the experiment ------------------------------------------------------------------------------------------------------
first: dict[str, torch.Tensor] = {}
hosts, backend = world.gather(bench.node_label()), dist.get_backend()
collectives = measure_collectives()
rows = [measure_stage(stage) for stage in stages]
nodes = size // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
parts = counting_text(4, args.length, VOCABULARY, torch.Generator().manual_seed(rank)).to(device)
plans = [row for name in MEASURED if (row := zero_plans.measure(name, world, nodes, build, parts))]
yours, sharded_broken = measure_sharded()
world.wait_for_all()
dist.destroy_process_group()
if rank:
    sys.exit()

# --- rank 0 compares, predicts and writes the record ----------------------------------------------------------------------
off, counts_broken = zero_plans.compare(rows, plans, parameters, nodes, size)
sent = {row["plan"]: row["inside_bytes"] + row["across_bytes"] for row in plans}
late = sent["gradients whole, 4 parts"] / sent["stage 3, 4 parts"]
sequences = torch.zeros(args.batch_size // size, args.length + 1, dtype=torch.long)
counts = (size, args.virtual_ranks) if args.virtual_ranks else ()
virtual, not_predicted = virtual_ranks.predict(stages, counts, device.type, build, sequences)
zero_report.compare_prediction(rows, virtual, size)
compared = [*rows, *([yours] if yours else [])]
for row in compared:
    row |= {f"{part}_per_parameter": row[f"{part}_bytes"] / parameters for part in PARTS}
metrics = {
    **vars(args), "backend": backend, "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)],
    "parameters": parameters, "stages": rows, "compared": compared, "collectives": collectives,
    "yours": yours or dict.fromkeys(("weights_off", "kept_for_each", "sent_times")),
    "plans": plans, "sent_of_late_sums": late, "counts_broken": counts_broken, **off, "sharded_broken": sharded_broken,
    "wire_off_percent": zero_report.compare_wire(rows, collectives), **zero_report.summarise(rows),
    "virtual": virtual, "not_predicted": not_predicted,
}  # fmt: skip
say(f"\n{parameters:,} parameters on {size} ranks: bytes per rank, on average (device: {device.type})")
zero_report.say_tables(compared, virtual)
if not_predicted:
    say(f"No memory predicted for other numbers of ranks: {not_predicted}")
for name, reason in {"my_count.py": counts_broken, "my_sharded.py": sharded_broken}.items():
    if reason != "no error":
        say(f"{name}: {reason}")
if device.type == "cpu":
    say("Bytes, collectives and losses are the same anywhere. Times are not: these ranks share cores. (device: cpu)")
bench.keep_files(__file__, "my_count.py", "my_sharded.py")
path = bench.write_metrics("zero_stages/1", device, world_size=size, seed=SEED, metrics=metrics)
bench.say_end(path, device)
