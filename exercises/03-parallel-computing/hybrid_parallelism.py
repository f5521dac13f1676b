"""Hybrid parallelism: copies of a transformer (data parallel), each of them cut into slices (tensor parallel).

You will learn    what a device mesh is, and which ranks communicate in it; how a layer is cut into columns, then rows; how much
                  memory, how many messages and how much time each layout needs
You will produce  the coordinates of each rank; proof that every layout trains like one process; a table row for each
Run it            torchrun --nproc-per-node=4 hybrid_parallelism.py --width 64 --length 32 --layers 2 --steps 5   (four ranks)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=2 --master-addr=10.0.0.1 --master-port=29500 \\
                           hybrid_parallelism.py               (two GPUs each; on the first node, --node-rank=1 on the second)
Your part         `cut`, `column_linear` and `row_linear` in my_slices.py, with which a copy then trains here
Reading           modules/03-parallel-computing/lesson-3-dividing.md, "A mesh: copies of slices"
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import own_part
import ranks
import sliced_training
import torch
import torch.distributed as dist
from bench import say
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformer import Transformer, parameter_bytes

VOCABULARY = sliced_training.VOCABULARY
PLAN = {  # wide in the middle: cut by columns on the way in and by rows on the way out, so that only the output needs a sum
    "attention.qkv": ColwiseParallel(), "attention.out": RowwiseParallel(),
    "mlp.up": ColwiseParallel(), "mlp.down": RowwiseParallel(),
}  # fmt: skip

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a transformer on a mesh of data parallel copies and tensor parallel slices")
parser.add_argument("--dp", type=int, default=1, help="copies of the model; dp times tp must be the number of ranks")
parser.add_argument("--tp", type=int, default=2, help="slices of each copy")
parser.add_argument("--width", type=int, default=1024, help="width of the model; a multiple of --heads")
parser.add_argument("--heads", type=int, default=16, help="heads of the attention; a multiple of --tp")
parser.add_argument("--layers", type=int, default=12, help="layers of the model")
parser.add_argument("--length", type=int, default=256, help="tokens of a sequence")
parser.add_argument("--batch-size", type=int, default=32, help="sequences of one step, over all copies; a multiple of --dp")
parser.add_argument("--steps", type=int, default=20, help="training steps of each layout; the first 3 are not timed")
args = parser.parse_args()
if min(vars(args).values()) < 1 or args.steps < 4:
    parser.error("every value must be at least 1, and --steps at least 4")
if args.width % args.heads or args.heads % args.tp or args.batch_size % args.dp:
    parser.error("--width must be a multiple of --heads, --heads a multiple of --tp, and --batch-size a multiple of --dp")

# --- set-up ------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_slices.py")  # it waits until the course's own measurements are done
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
if args.dp * args.tp != size:
    dist.destroy_process_group()
    sys.exit(f"{args.dp} copies (--dp) of {args.tp} slices (--tp) are {args.dp * args.tp} ranks, but there are {size}")
torch.backends.cuda.matmul.allow_tf32 = False
text = sliced_training.make_text(args.batch_size, args.length).to(device)
shape = [args.length, args.width, args.heads, args.layers]
hosts = world.gather(bench.node_label())


def build() -> Transformer:
    return sliced_training.make_model(*shape).to(device)


def local(tensor: torch.Tensor) -> torch.Tensor:
    """Return this rank's part of the tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """Return the whole tensor, assembled from all slices."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


# --- one way of training, on a mesh or alone ---------------------------------------------------------------------------------
def average_over_copies(model: nn.Module, copies: DeviceMesh) -> None:
    """Average the gradients explicitly, as data parallelism does: one AllReduce for all gradients of this slice, among the
    ranks that have the slice."""
    gradients = [local(weight.grad) for weight in model.parameters()]
    bucket = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(bucket, group=copies.get_group())
    bucket /= copies.size()
    for gradient, mean in zip(gradients, bucket.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def train(mesh: DeviceMesh | None) -> dict[str, object]:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    model, share = build(), text
    if mesh is not None:
        share = text.chunk(mesh["dp"].size())[mesh["dp"].get_local_rank()]  # each copy has its own sequences
        if mesh["tp"].size() > 1:
            for block in model.blocks:
                parallelize_module(block, mesh["tp"], PLAN)
    optimizer, losses = sliced_training.make_optimizer(model), []

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = sliced_training.compute_loss(model, share)
        loss.backward()
        if mesh is not None:
            average_over_copies(model, mesh["dp"])
        optimizer.step()
        losses.append(loss.detach())

    with CommDebugMode() as noted:  # the collectives that the slices need, without the one between the copies
        step()
    messages = sum(count for name, count in noted.get_comm_counts().items() if "functional" in str(name))
    seconds = bench.time_each(step, device, args.steps - 1)[2:]
    tensors_by_kind = {"parameter": [*model.parameters()], "gradient": [weight.grad for weight in model.parameters()]}
    tensors_by_kind["optimizer"] = [state["momentum_buffer"] for state in optimizer.state.values()]
    sizes = {
        f"{kind}_bytes": sum(local(t).numel() * t.element_size() for t in tensors) for kind, tensors in tensors_by_kind.items()
    }
    return {
        "losses": torch.stack(losses).double(), "seconds": seconds, "weights": ranks.flat(map(whole, model.parameters())),
        "messages": messages, "bytes": sizes | {"state_bytes": sum(sizes.values())},
        "peak": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }  # fmt: skip


def layout(dp: int, tp: int) -> dict[str, object]:
    mesh = init_device_mesh(device.type, (dp, tp), mesh_dim_names=("dp", "tp"))  # rank = dp coordinate * tp + tp coordinate
    copy, slice_ = mesh.get_coordinate()
    say(f"rank {rank} on {hosts[rank]}: copy {copy} of {dp}, slice {slice_} of {tp}")
    result, places = train(mesh), world.gather({"rank": rank, "host": hosts[rank], "dp": copy, "tp": slice_})
    loss, step_s = world.reduce(result["losses"], dist.ReduceOp.SUM) / size, world.slowest(result["seconds"])
    sliced_bytes = parameter_bytes(VOCABULARY, args.length, args.width, args.layers, slices=tp)
    row = {
        "layout": f"dp {dp} x tp {tp}", "dp": dp, "tp": tp, "ranks": places, **bench.spread_ms(step_s),
        "tokens_per_s": args.batch_size * args.length / bench.percentile(step_s, 50), **result["bytes"],
        "bytes_off": max(abs(sizes["parameter_bytes"] - sliced_bytes) for sizes in world.gather(result["bytes"])),
        "nodes_per_copy": max(len({p["host"] for p in places if p["dp"] == number}) for number in range(dp)),
        "tp_messages": result["messages"], "messages_off": abs(result["messages"] - (4 * args.layers if tp > 1 else 0)),
        "tp_message_bytes": 4 * args.batch_size // dp * args.length * args.width if tp > 1 else 0,
        "dp_message_bytes": result["bytes"]["gradient_bytes"] if dp > 1 else 0, "peak_gpu_memory_bytes": result["peak"],
        "parameter_difference": world.difference(result["weights"]), "loss_after": loss[-1].item(),
    }  # fmt: skip
    if rank == 0:
        row["loss_error"] = (loss / solo["losses"] - 1).abs().max().item()
        row["parameter_error"] = ((result["weights"] - solo["weights"]).abs().max() / solo["weights"].abs().max()).item()
    return row


# --- one process, on rank 0 alone; then the requested layout, and the others that this number of ranks allows ----------------
warnings.filterwarnings("ignore", message="Full backward hook is firing")  # by CommDebugMode, for a model that reads tokens
start = time.perf_counter()
solo = train(None) if rank == 0 else None
world.wait_for_all()
further_layouts = [
    (size // tp, tp) for tp in range(1, size + 1) if size % tp == args.heads % tp == args.batch_size % (size // tp) == 0
]
layouts = [layout(dp, tp) for dp, tp in dict.fromkeys([(args.dp, args.tp), *further_layouts])]

# --- yours: one copy in as many slices as there are ranks, with the layers of my_slices.py, if they are written ---------------
outcome = None
if args.heads % size == 0:  # a slice consists of whole heads
    settings = {"shape": shape, "samples": args.batch_size, "steps": args.steps}
    outcome = learner_part.run(world, "sliced_training:train", limit_s=max(60.0, time.perf_counter() - start), **settings)


def compare_layers(outcome: own_part.Outcome | None) -> dict[str, object]:
    """Return the row of the learner's layers, with its differences from one process and from the formulas."""
    if outcome is None or outcome.state != "ran":
        failure = outcome.text if outcome and outcome.state == "failed" else None
        return {"outcome": failure, "rows": [], "loss_error": None, "bytes_off": None, "messages_off": None}
    row, single_losses = outcome.results[0] | {"nodes_per_copy": len(set(hosts))}, solo["losses"].tolist()
    errors = [
        abs(loss / right - 1) for result in outcome.results for loss, right in zip(result["losses"], single_losses, strict=True)
    ]
    return {
        "outcome": "ran", "rows": [row], "loss_error": max(errors, key=lambda error: math.inf if math.isnan(error) else error),
        "bytes_off": max(result["bytes_off"] for result in outcome.results),
        "messages_off": abs(row["tp_messages"] - 4 * args.layers) if size > 1 else 0,
    }  # fmt: skip


# --- the record --------------------------------------------------------------------------------------------------------------
if rank == 0:
    of_slices = next((row for row in layouts if row["dp"] == 1), None)
    alone = {"layout": "one process", "dp": 1, "tp": 1, **bench.spread_ms(solo["seconds"]), **solo["bytes"], "tp_messages": 0}
    alone |= {"tp_message_bytes": 0, "dp_message_bytes": 0, "loss_after": solo["losses"][-1].item()}
    alone["tokens_per_s"] = args.batch_size * args.length / bench.percentile(solo["seconds"], 50)
    yours, main = compare_layers(outcome), layouts[0]
    with_slices, with_copies = (next((row for row in layouts if row[key] > 1), main) for key in ("tp", "dp"))
    slice_bytes, copy_bytes = with_slices["tp_messages"] * with_slices["tp_message_bytes"], with_copies["dp_message_bytes"]
    metrics = {
        **vars(args), "backend": dist.get_backend(), "ranks": layouts[0]["ranks"], "layouts": layouts,
        "compared": [alone, *layouts, *yours["rows"]], "yours": yours,
        "slices_times_copies": slice_bytes / copy_bytes if copy_bytes else None,
        "losses": solo["losses"].tolist(), "loss_before": solo["losses"][0].item(),
        "state_bytes_of_slices": of_slices and of_slices["state_bytes"],
        "nodes_per_copy": layouts[0]["nodes_per_copy"] if min(map(hosts.count, hosts)) >= args.tp else None,
        "times_one_process": layouts[0]["tokens_per_s"] / alone["tokens_per_s"],
        "places": len({(place["dp"], place["tp"]) for place in layouts[0]["ranks"]}),
    }  # fmt: skip
    bench.say_table(layouts[0]["ranks"], {"rank": "rank", "host": "node", "dp": "dp", "tp": "tp"})
    titles = {"layout": "layout", "parameter_bytes": "parameters B", "state_bytes": "+ gradients, optimizer B"}
    titles |= {"tp_messages": "messages in a copy", "tp_message_bytes": "B each", "dp_message_bytes": "B between copies"}
    titles |= {"median_ms": "step ms", "tokens_per_s": "tokens/s", "loss_error": "loss off"}
    bench.say_table(metrics["compared"], titles)
    if outcome is None:
        say(f"A copy in {size} slices needs a multiple of {size} heads (--heads), so my_slices.py is not used here.")
    elif outcome.state == "open":
        say("my_slices.py is unchanged. Once you write it, the table has a row for a copy that trains with your layers.")
    elif outcome.state == "failed":
        say(f"your layers did not train: {outcome.text}")
    if device.type == "cpu":
        say("Bytes, messages and losses hold anywhere. The times do not: on loopback, links inside a node are not faster.")
    path = bench.write_metrics("hybrid_parallelism/1", device, world_size=size, seed=sliced_training.SEED, metrics=metrics)
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
