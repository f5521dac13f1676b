"""FSDP by hand: the same training with DDP, with torch's fully_shard, and with the fully_shard that you write.

You will learn    when a rank needs whole weights, how their memory is freed, how a gather hides behind a computation
You will produce  losses, bytes held and sent, and blocks in memory, of DDP, of fully_shard, and of yours
Run it            python fsdp_by_hand.py --ranks-per-node=4 --layers=4 --width=64 --length=32 --batch-size=24   (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           fsdp_by_hand.py                    (a GPU each; on the first node, --node-rank=1 on the second)
Your part         predict what bfloat16 saves; then my_fsdp.py
Reading           modules/06-training-at-scale/lesson-12-fsdp.md
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import fsdp_trial
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="DDP, fully_shard, and your own")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked on each node; 1 on macOS and with GPUs")
parser.add_argument("--layers", type=int, default=24, help="blocks of the transformer")
parser.add_argument("--width", type=int, default=1024, help="numbers that represent a token between two blocks")
parser.add_argument("--length", type=int, default=256, help="tokens in a sequence")
parser.add_argument(
    "--batch-size", type=int, default=48, help="sequences in a step over all ranks, a multiple of the number of ranks"
)
parser.add_argument("--steps", type=int, default=10, help="steps of each training")
args = parser.parse_args()
size = int(os.environ.get("WORLD_SIZE", "1")) * args.ranks_per_node
if min(args.ranks_per_node, args.width, args.length, args.batch_size) < 1 or args.layers < 3 or args.steps < 4:
    parser.error("sizes must be positive, --layers at least 3, and --steps at least 4")
if args.width > fsdp_trial.HEAD and args.width % fsdp_trial.HEAD:
    parser.error(f"--width ({args.width}) must be a multiple of {fsdp_trial.HEAD}, the width of a head")
if size < 2:
    parser.error("one rank has nothing to shard: take two nodes (deploy 6 --nodes 2), or --ranks-per-node=2 on CPUs")
if args.batch_size % size:
    parser.error(f"--batch-size ({args.batch_size}) must be a multiple of the number of ranks, {size}")

# --- set-up ------------------------------------------------------------------------------------------------------------
crew.start(args.ranks_per_node)  # from here on this process is one rank
learner_part = own_part.Process("my_fsdp.py")
warnings.filterwarnings("ignore", category=FutureWarning, message=".*deprecated.*")  # newer names for the same collectives
warnings.filterwarnings("ignore", message=".*FSDP2-wrapped module.*")  # no block changes its input in place
world = ranks.join()
torch.backends.cuda.matmul.allow_tf32 = False
if world.device.type == "cpu":
    torch.set_num_threads(1)
settings = {name: getattr(args, name) for name in ("layers", "width", "length", "batch_size", "steps")}


def copy_to_all(blocks: nn.Sequential) -> tuple[nn.Module, Sequence[nn.Parameter]]:
    net = DistributedDataParallel(blocks, gradient_as_bucket_view=True)
    return net, list(net.parameters())


def divide(blocks: nn.Sequential, policy: MixedPrecisionPolicy) -> tuple[nn.Module, Sequence[nn.Parameter]]:
    for block in blocks:
        fully_shard(block, reshard_after_forward=True, mp_policy=policy)
    fully_shard(blocks, mp_policy=policy)  # it has no weights left, and orders the gathers of backward
    return blocks, list(blocks.parameters())


full = MixedPrecisionPolicy()
half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16, output_dtype=torch.float32)


def describe(way: str, wire: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of one training run from the results of all ranks.

    Bytes are those of the fullest rank, and times those of the slowest.
    """
    numbers, first = args.layers * results[0]["block_numbers"], results[0]
    share_bytes, number_bytes = 4 * numbers / size, 2 if wire == "bfloat16" else 4
    row = {
        "way": way,
        "wire": wire,
        "label": way if wire == "float32" else f"{way}, {wire}",
        "calls": sum(first["calls"].values()),
    }
    row |= {
        key: max(result[key] for result in results)
        for key in ("weights_bytes", "gradients_bytes", "moments_bytes", "kept_bytes")
    }
    row |= {"alive": max(max(result["alive"]) for result in results), "sent_bytes": first["sent_bytes"]}
    row["by_formula_bytes"] = (2 if way == "DDP" else 3) * (size - 1) / size * numbers * number_bytes
    row["sent_of_formula"] = row["sent_bytes"] / row["by_formula_bytes"]
    row["kept_of_share"] = row["kept_bytes"] / share_bytes
    row["ahead"] = min(result["ahead_forward"] + result["ahead_backward"] for result in results) if way == "yours" else None
    losses = [sum(step) / size for step in zip(*(result["losses"] for result in results), strict=True)]
    row |= {"losses": losses, "loss": losses[-1]}
    row["loss_off"] = max(
        abs(loss - right) for loss, right in zip(losses, (rows[0]["losses"] if rows else losses), strict=True)
    )
    return row | bench.spread_ms([max(seconds) for seconds in zip(*(result["seconds"] for result in results), strict=True)])


NOT_MEASURED = dict.fromkeys(("loss_off", "kept_of_share", "alive", "sent_of_formula", "ahead"))

# --- the experiment ----------------------------------------------------------------------------------------------------
rows: list[dict[str, Any]] = []
hosts = world.gather(bench.node_label())
rows.append(describe("DDP", "float32", world.gather(fsdp_trial.train(world, copy_to_all, **settings))))
for wire, policy in (("float32", full), ("bfloat16", half)):
    result = fsdp_trial.train(world, lambda blocks, policy=policy: divide(blocks, policy), **settings)
    rows.append(describe("fully_shard", wire, world.gather(result)))
outcome = learner_part.run(world, "fsdp_trial:train_yours", limit_s=75, **settings)
yours = {}
if outcome.state == "ran":
    yours = {wire: describe("yours", wire, [result[wire] for result in outcome.results]) for wire in fsdp_trial.TYPES}
if world.rank > 0:
    dist.destroy_process_group()
    sys.exit()

# --- the record --------------------------------------------------------------------------------------------------------
ddp, torch_32, torch_16 = rows
rows += yours.values()
metrics = {
    **vars(args), "ranks": [{"rank": number, "host": host} for number, host in enumerate(hosts)], "trainings": rows,
    "torch_loss_off": torch_32["loss_off"], "torch_16_loss_off": torch_16["loss_off"], "torch_alive": torch_32["alive"],
    "torch_sent_of_formula": torch_32["sent_of_formula"], "sent_of_16": torch_16["sent_bytes"] / torch_32["sent_bytes"],
    "ddp_bytes_of_16": torch_16["sent_bytes"] / ddp["sent_bytes"],
    "held_percent": 100 * torch_32["weights_bytes"] / ddp["weights_bytes"],
    "ahead_possible": 2 * (args.layers - 1), "yours_error": "no error" if yours else outcome.text,
    "yours": yours.get("float32", NOT_MEASURED), "yours_16": yours.get("bfloat16", NOT_MEASURED),
    "yours_sent_of_16": yours["bfloat16"]["sent_bytes"] / yours["float32"]["sent_bytes"] if yours else None,
}  # fmt: skip
titles = {"label": "training", "weights_bytes": "weights", "gradients_bytes": "gradients", "moments_bytes": "moments"}
titles |= {"alive": "whole blocks", "sent_bytes": "sent", "by_formula_bytes": "formula", "ahead": "gathers ahead"}
say(f"\nBytes on the fullest of {size} ranks, and how many blocks it had whole (device: {world.device.type})")
bench.say_table(rows, titles | {"median_ms": "step ms", "loss": "loss"})
if outcome.state == "open":
    say(f"my_fsdp.py is not written yet: here two rows would follow, yours. {outcome.text}")
elif outcome.state == "failed":
    say(f"my_fsdp.py: {outcome.text}")
bench.keep_files(__file__, "my_fsdp.py")
path = bench.write_metrics("fsdp_by_hand/1", world.device, world_size=size, seed=fsdp_trial.SEED, metrics=metrics)
bench.say_end(path, world.device)
dist.destroy_process_group()
