"""Three dimensions at once: a transformer as copies (dp) of stages (pp) of slices (tp), on a mesh that you arrange.

You will learn    how ranks divide a model in three ways at once, and train as one process does; what each way sends, how much
                  of it crosses between nodes, and why that depends on the order of the dimensions; what limits each layout
You will produce  the mesh of your run (mesh.txt); the bytes of each dimension, counted and by formula; a row for each layout
Run it            torchrun --nproc-per-node=1 three_dimensions.py --ranks-per-node 8 --layers 4 --width 64 --heads 4 \\
                           --length 32 --batch-size 16 --micro-batches 4 --steps 4          (eight ranks of one computer)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           three_dimensions.py                     (on the first node; --node-rank=1 on the second)
Your part         ORDER, `coordinates`, `groups` and `cross_node_bytes` in my_mesh.py; `largest` in my_limits.py
Reading           modules/06-training-at-scale/lesson-5-mesh.md, lesson-6-layouts.md
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import crew
import layouts
import mesh_choice
import mesh_report
import ranks
import torch
import torch.distributed as dist
from bench import say
from mesh_model import DIMENSIONS, Layout, Shape, lay_out
from mesh_traffic import predict_message_bytes, price_by_dimension

SEED = 0

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a transformer on a mesh of copies, stages and slices, and in one process")
parser.add_argument("--ranks-per-node", type=int, default=1, help="ranks forked from each process; 1 on macOS and with GPUs")
parser.add_argument(
    "--layouts", type=str, default="auto", help="the layouts, each as dp x pp x tp, such as 2x2x2,1x2x4; auto takes up to three"
)
parser.add_argument("--layers", type=int, default=12, help="layers of the transformer; at least as many as stages")
parser.add_argument("--width", type=int, default=1024, help="width of the transformer; a multiple of --heads")
parser.add_argument("--heads", type=int, default=16, help="attention heads; a multiple of tp")
parser.add_argument("--length", type=int, default=256, help="tokens of a sequence")
parser.add_argument("--batch-size", type=int, default=32, help="sequences of one step, over all copies")
parser.add_argument("--micro-batches", type=int, default=8, help="pieces into which each copy's share of the batch is cut")
parser.add_argument("--steps", type=int, default=10, help="training steps of each layout; the first two are not timed")
args = parser.parse_args()
if min(value for value in vars(args).values() if isinstance(value, int)) < 1 or args.steps < 3:
    parser.error("every number must be at least 1, and --steps at least 3")
if args.width % args.heads:
    parser.error(f"--width must be a multiple of --heads: {args.heads} heads cannot share {args.width} units")
if args.batch_size % args.micro_batches:
    parser.error("--batch-size must be a multiple of --micro-batches, and with dp copies of dp times --micro-batches")
try:
    mesh_report.parse_layouts(args.layouts)
except ValueError as error:
    parser.error(f"--layouts must be auto, or numbers such as 2x2x2,1x2x4 (dp x pp x tp), not {error}")
crew.start(args.ranks_per_node)

# --- set-up: which layouts, and where each rank is ----------------------------------------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
torch.set_num_threads(1)  # on CPUs one thread per rank, so that its processor time is the time in which it was busy
torch.backends.cuda.matmul.allow_tf32 = False
shape = Shape(args.layers, args.width, args.heads, args.length, args.batch_size, args.micro_batches, args.steps, seed=SEED)
selection, rejections = mesh_report.choose_layouts(args.layouts, size, shape)
if refusal := mesh_report.find_refusal(selection, rejections, size, shape):
    dist.destroy_process_group()
    sys.exit(refusal)
nodes = world.gather(bench.node_label())
choice = mesh_choice.Choice() if rank == 0 else None
meshes = world.gather([choice.place_ranks(layout) for layout in selection] if choice else None)[0]  # one rank asks for all
yours_are_used = all(mesh is not None for mesh in meshes)
order = world.gather(choice.order if choice and yours_are_used else mesh_choice.DELIVERED)[0]
for sentence in rejections if rank == 0 else []:
    say(sentence)


def place(layout: Layout) -> torch.Tensor:
    """Return the rank at each place (dp, pp, tp), from your my_mesh.py or, without your part, as delivered."""
    return meshes[selection.index(layout)] if yours_are_used else lay_out(layout, mesh_choice.DELIVERED)


# --- one process, on rank 0 alone; then each layout: train it, count what it sends, compare -----------------------------------
def measure(layout: Layout) -> dict[str, object]:
    result = layouts.run_layout(world, layout, shape, alone, mesh=place(layout))
    row = mesh_report.summarise(result, layout, shape, nodes, alone.losses, on_gpu=device.type == "cuda")
    by_stage = [predict_message_bytes(shape, layout, stage) for stage in range(layout.pp)]
    answer = choice.predict_bytes(layout, nodes.count(nodes[0]), by_stage) if choice and yours_are_used else None
    row["cross_by_yours"] = answer
    row["cross_off_bytes"] = None if answer is None else abs(answer - row["cross_node_bytes"])
    row["wrong_groups"] = choice.count_wrong_groups(layout, result.mesh) if choice and yours_are_used else None
    if rank == 0:
        say(f"{layout}: loss after {row['loss_after']:.6f}, off by {row['loss_off']:.1e} from one process; {row['bottleneck']}")
    return row | {"message_bytes": result.message_bytes}


alone = layouts.train_alone(world, shape)
rows = [measure(layout) for layout in selection]

# --- what other orders of the dimensions would send between nodes: the counted messages of the first layout, on other meshes --
first, first_mesh = selection[0], place(selection[0])
bytes_of_first = rows[0]["message_bytes"]
orders = []
for order_of_dimensions in itertools.permutations(DIMENSIONS):
    mesh = lay_out(first, order_of_dimensions)
    by_rank = dict(zip(mesh.flatten().tolist(), (bytes_of_first[r] for r in first_mesh.flatten().tolist()), strict=True))
    crossing = price_by_dimension(mesh, nodes, [by_rank[r] for r in range(size)])
    across = {f"cross_{name}_bytes": crossing[name] for name in DIMENSIONS} | {"cross_node_bytes": sum(crossing.values())}
    name, is_yours = ", ".join(order_of_dimensions), order_of_dimensions == order
    labels = {"label": f"{name} (yours)" if is_yours else name, "yours": "yes" if is_yours else ""}
    orders.append({"order": name, **labels, **across})


def total(key: str) -> float | None:
    """Return the sum over all layouts, or None if your part has no answer for a layout."""
    values = [row[key] for row in rows]
    return None if None in values else sum(values)


# --- the record --------------------------------------------------------------------------------------------------------------
if rank == 0:
    limits, limits_broken = mesh_choice.ask_limits()
    limits_right = [row["is_right"] for row in limits]
    bytes_of_orders = [row["cross_node_bytes"] for row in orders]
    alone_tokens_per_s = args.batch_size * args.length / bench.percentile(alone.seconds, 50)
    ranks_of_a_node = min(map(nodes.count, nodes))
    avoidable = [row["tp_groups_across_nodes"] for row in rows if ranks_of_a_node % row["tp"] == 0]
    last_group = next(group for group in mesh_report.list_groups(first_mesh, "tp") if size - 1 in group)
    metrics = {
        **vars(args), "backend": dist.get_backend(), "nodes_used": len(set(nodes)), "order": ", ".join(order),
        "ranks": mesh_report.list_places(first_mesh, nodes), "layouts": rows, "orders": orders, "rejections": rejections,
        "mesh_broken": choice.broken or "no error" if yours_are_used or choice.broken else None,
        "cross_node_bytes": rows[0]["cross_node_bytes"], "tp_bytes": rows[0]["tp_bytes"],
        "tp_groups_across_nodes": sum(avoidable) if avoidable else None, "first_of_last_tensor_group": min(last_group),
        "wrong_groups": total("wrong_groups"), "cross_off_bytes": total("cross_off_bytes"),
        "worst_order_times": max(bytes_of_orders) / min(bytes_of_orders) if min(bytes_of_orders) else None,
        "limits": limits, "limits_broken": limits_broken,
        "limits_wrong": None if limits_right[0] is None and not limits_broken else sum(not right for right in limits_right),
        "times_one_process": max(row["tokens_per_s"] for row in rows) / alone_tokens_per_s,
    }  # fmt: skip
    titles = {"layout": "dp x pp x tp", "tp_bytes": "tp B", "pp_bytes": "pp B", "dp_bytes": "dp B"}
    titles |= {"cross_node_bytes": "B between nodes", "cross_by_yours": "by yours", "bubble_predicted_percent": "bubble %"}
    titles |= {
        "bubble_replayed_percent": "replayed",
        "loss_off": "loss off",
        "median_ms": "step ms",
        "bottleneck": "bottleneck",
    }
    bench.say_table(rows, titles)
    columns = {"order": "order, slowest first", "cross_node_bytes": "B between nodes", "yours": "yours"}
    bench.say_table(orders, columns)
    bench.say_table(limits, {"cluster": "cluster", "way": "way", "yours": "ranks, yours", "exposed_percent": "wait %",
                             "exposed_twice_percent": "with twice as many"})  # fmt: skip
    if limits_right[0] is None:
        say("Your largest is not written yet: with it, the table has your limits, and how long computing waits beyond them.")
    if device.type == "cpu":
        say("Bytes, losses and bubbles are the same anywhere. Times are not: the ranks share cores, and no link is slow.")
    path = bench.write_metrics("three_dimensions/1", device, world_size=size, seed=SEED, metrics=metrics)
    grids = [mesh_report.draw_mesh(f"dp x pp x tp = {layout}", place(layout), nodes) for layout in selection]
    if (part_file := Path(__file__).resolve().parent / "my_mesh.py").parent != path.parent.resolve():
        shutil.copyfile(part_file, path.parent / "my_mesh.py")  # what the mesh was made with, to keep with it
    (path.parent / "mesh.txt").write_text("\n".join([f"order, slowest first: {', '.join(order)}\n", *grids]), encoding="utf-8")
    bench.say_end(path, device)

world.wait_for_all()
dist.destroy_process_group()
