"""Distributed checkpoints: a run that all ranks save in slices continues on all ranks, on half of them, and on one.

You will learn    what a checkpoint must contain; which slice is in which file; why fewer ranks can read it; when it is whole
You will produce  the losses of each continued run and of the one that never stopped; bytes and seconds of a save
Run it            python distributed_checkpoints.py --ranks-per-node=4 --layers 2 --width 128     (four ranks on CPUs)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           distributed_checkpoints.py --folder /shared     (a GPU each; on the second node, --node-rank=1)
Your part         predict what missing moments change; then write state, restore and plan_reads in my_checkpoint.py
Reading           modules/06-training-at-scale/lesson-7-checkpoints.md, lesson-8-saves.md
"""

from __future__ import annotations

import argparse
import operator
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import checkpoints
import crew
import my_checkpoint
import ranks
import sharded_training
import torch.distributed as dist
from bench import say
from checkpoint_contents import damage, list_files, list_missing, list_slices, measure_disk, read_as_planned, sum_tensor_bytes
from sharded_training import BATCH, HEADS, Training, build, count_parameters, train
from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

SEED, OTHER_SEED = 0, 1  # of the saved training run, and of those that continue it: no result may be right by chance
SHOWN = "model.blocks.0.mlp.up.weight"

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="a training run saved in slices, and continued on all, half, and one of its ranks")
parser.add_argument(
    "--ranks-per-node", type=int, default=1, help="ranks forked from each process on CPUs; 1 on macOS and with GPUs"
)
parser.add_argument("--layers", type=int, default=12, help="layers of the transformer")
parser.add_argument("--width", type=int, default=1024, help=f"width of the transformer; a multiple of {HEADS}")
parser.add_argument("--steps", type=int, default=12, help="steps of the run that is never interrupted")
parser.add_argument(
    "--save-at", type=int, default=6, help="number of steps after which the training is saved; at least two more follow"
)
parser.add_argument(
    "--folder", default="", help="folder shared by all nodes; by default /shared if it is mounted, else the work folder"
)
parser.add_argument(
    "--asynchronous",
    action=argparse.BooleanOptionalAction,
    default=False,
    help="continue training while the checkpoint is written",
)
args = parser.parse_args()
if min(args.ranks_per_node, args.layers, args.width, args.save_at) < 1 or args.width % HEADS:
    parser.error(f"every number must be at least 1, and --width a multiple of {HEADS}")
if args.save_at > args.steps - 2:
    parser.error(f"--save-at must be at most --steps - 2 ({args.steps - 2}): the first loss after a load ignores moments")
crew.start(args.ranks_per_node)

# --- set-up ------------------------------------------------------------------------------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
parameters = count_parameters(args.width, args.layers)
if not 2 <= size <= BATCH:
    dist.destroy_process_group()
    few = "one rank has nothing to shard: take two nodes (gpucourse deploy 6 --nodes 2), or --set ranks_per_node=2"
    sys.exit(few if size < 2 else f"{size} ranks, but a step has {BATCH} sequences: take {BATCH} ranks or fewer")
sharded_training.be_repeatable(device)
root = checkpoints.choose_root(world, args.folder)
needed_bytes, free = 4 * 12 * parameters, shutil.disk_usage(root).free
too_small = (
    f"{root} has {free:,} bytes free, but this run writes up to {needed_bytes:,}: set another folder, or a smaller width"
)
world.give_up_together(too_small if rank == 0 and free < needed_bytes else None)
filesystem = checkpoints.find_filesystem(root)
hosts = world.gather(bench.node_label())
if rank == 0:
    say(f"{size} ranks, nodes: {len(set(hosts))}, {parameters:,} parameters; checkpoints in {root} ({filesystem})")


def attempt(training: Training | None, call: Callable[..., Any], *arguments: Any) -> tuple[Any, str | None]:
    """Return the result of the call on this rank, and the error of the first rank that had one.

    The call runs your code, so an error is reported but does not end the run. Ranks without a training run only listen.
    """
    answer = error = None
    if training:
        try:
            answer = call(*arguments)
        except Exception as problem:  # noqa: BLE001
            say(traceback.format_exc())
            error = f"{type(problem).__name__} in {call.__name__}"
    world.wait_for_all()
    errors = [text for text in world.gather(error) if text]
    return answer, errors[0] if errors else None


def save_yours(training: Training) -> tuple[Callable[[], checkpoints.Checkpoint] | None, float | None, str | None]:
    """Save your state as --asynchronous says. Return three things:

    - the function that waits for the save's end,
    - the seconds of a save for which training waits, even if training did not wait for this one,
    - your error.
    """

    def begin_save(*, asynchronous: bool) -> Callable[[], checkpoints.Checkpoint]:
        state = my_checkpoint.state(training.model, training.optimizer, args.save_at, training.generator)
        return checkpoints.begin_save(state, folder, training.group, asynchronous=asynchronous)

    def save_and_train_on() -> Callable[[], checkpoints.Checkpoint]:
        return begin_save(asynchronous=args.asynchronous)

    def save() -> float:
        return begin_save(asynchronous=False)().seconds

    waited_s, error = attempt(training, save) if args.asynchronous else (None, None)
    wait_for_save, error = (None, error) if error else attempt(training, save_and_train_on)
    return wait_for_save, waited_s and max(world.gather(waited_s)), error


def continue_training(training: Training | None) -> dict[str, Any]:
    """Continue from your checkpoint in a new training run.

    Return the step that it begins with, its losses, and the seconds of reading, or your error.
    """

    def load() -> tuple[dict[str, Any], float, int | None]:
        state = my_checkpoint.state(training.model, training.optimizer, 0, training.generator)
        earlier, start = checkpoints.read_from_disk(), time.perf_counter()
        checkpoints.load(state, folder, training.group)
        read = None if earlier is None else checkpoints.read_from_disk() - earlier
        return state, time.perf_counter() - start, read

    def restore(state: dict[str, Any]) -> int:
        step = operator.index(my_checkpoint.restore(training.model, training.optimizer, training.generator, state))
        if not 0 <= step <= args.steps:
            raise ValueError(f"restore returned {step}, which is not a number of steps from 0 to {args.steps}")
        return step

    checkpoints.forget_cache(folder)  # on every node
    world.wait_for_all()
    loaded, error = attempt(training, load)
    step, error = (None, error) if error else attempt(training, restore, loaded and loaded[0])
    losses = train(training, range(step, args.steps)) if training and not error else {}
    world.wait_for_all()
    times = [own_times for own_times in world.gather(loaded and loaded[1:]) if own_times]
    row = {"step_found": world.gather(step)[0], "error": error, "load_s": max((s for s, _ in times), default=None)}
    from_disk = sum(read or 0 for _, read in times)
    return row | {"from_disk_bytes": from_disk if times and times[0][1] is not None else None, "losses": losses}


def continue_with_weights_only() -> dict[int, float]:
    """Make the usual mistake on purpose: restore step, generator and weights, but begin with new moments.

    Return the losses by step.
    """
    weights_model = build(world, size, args.width, args.layers, OTHER_SEED)
    weights = get_model_state_dict(weights_model.model)
    checkpoints.load({"model": weights}, weights_only, weights_model.group)
    set_model_state_dict(weights_model.model, weights)
    weights_model.generator = generator_copy
    return train(weights_model, range(args.save_at, args.steps))


def find_offset(losses: dict[int, float]) -> float | None:
    """Return the largest difference from the losses of the run that never stopped, over the steps of both runs.

    Return None if they have no step in common.
    """
    return max((abs(losses[step] - right) for step, right in reference.items() if step in losses), default=None)


# --- a training run, saved in the middle ------------------------------------------------------------------------------------
first = build(world, size, args.width, args.layers, SEED)
before_save = train(first, range(args.save_at))
generator_copy = first.generator.clone_state()
folder, weights_only = checkpoints.choose_folder(root, args.save_at), root / "weights-only"
checkpoints.save({"model": get_model_state_dict(first.model)}, weights_only, first.group)
one_file = sharded_training.save_one_file(first, root / "one-file.pt")
world.wait_for_all()
wait_for_save, waited_s, broken = save_yours(first)
reference = train(first, range(args.save_at, args.steps))
saved, broken = attempt(first, wait_for_save) if wait_for_save and not broken else (None, broken)
del first

# --- new trainings continue from it, on fewer and fewer ranks ----------------------------------------------------------------
worlds, lines = [], [{"world": "never stopped", "step": step, "loss": loss} for step, loss in (before_save | reference).items()]
for count in dict.fromkeys([size, max(size // 2, 1), 1]):
    training = build(world, count, args.width, args.layers, OTHER_SEED)
    if broken:
        break
    result = continue_training(training)
    broken, losses = result.pop("error"), result.pop("losses")
    name = f"on {count} rank{'s' * (count > 1)}"
    lines += [{"world": name, "step": step, "loss": loss} for step, loss in losses.items()]
    worlds.append({"ranks": count, **result, "loss_off": find_offset(losses)})
only = continue_with_weights_only()
lines += [{"world": "weights only", "step": step, "loss": loss} for step, loss in only.items()]
seconds = world.slowest([saved.seconds, saved.blocked_s]) if saved else [None, None]
disk_gb_per_s = measure_disk(world, root, saved.bytes // size if saved else 0)

# --- the record --------------------------------------------------------------------------------------------------------------
if rank == 0:
    contents = checkpoints.read_metadata(folder) if saved else None
    tensor_bytes = sum_tensor_bytes(contents) if contents else None
    gb_per_s = saved.bytes / seconds[0] / 1e9 if saved else None
    for row in worlds:
        all_from_disk = row["from_disk_bytes"] is not None and row["from_disk_bytes"] >= saved.bytes
        row["gb_per_s"] = saved.bytes / row["load_s"] / 1e9 if all_from_disk else None
    damaged = damage(root, folder, args.steps) if saved else []
    names = {path.name for path in checkpoints.list_whole(root)}
    folders = [{"folder": path.name, "lacks": checkpoints.find_gap(path) or "nothing",
                "taken": "yes" if path.name in names else "no"} for path in [folder, *damaged] if saved]  # fmt: skip
    sharded = {"way": "all, in background" if args.asynchronous else "all ranks", "bytes": saved and saved.bytes}
    sharded |= {"files": saved and saved.files, "seconds": seconds[0], "blocked_s": seconds[1]}
    alone = {"way": "rank 0, one file", "files": 1, **one_file, "blocked_s": one_file["seconds"]}
    reads, reads_result = read_as_planned(contents, folder, SHOWN, [max(size // 2, 1), 3]) if contents else ([], None)
    metrics = {
        **vars(args), "backend": dist.get_backend(), "nodes": len(set(hosts)), "parameters": parameters,
        "ranks": [{"rank": r, "host": host} for r, host in enumerate(hosts)], "filesystem": filesystem,
        "state_broken": broken or "no", "worlds": worlds, "losses": lines, "model_only_off": find_offset(only),
        "same_world_off": worlds[0]["loss_off"] if worlds and not broken else None,
        "other_worlds_off": max((row["loss_off"] for row in worlds[1:] if row["loss_off"] is not None), default=None),
        "steps_found": [row["step_found"] for row in worlds], "missing": list_missing(contents) if contents else None,
        "saved": {**sharded, "wait_s": waited_s, "gb_per_s": gb_per_s, "tensor_bytes": tensor_bytes,
                  "formula_off_percent": saved and 100 * abs(tensor_bytes / (12 * parameters) - 1),
                  "percent_of_disk": gb_per_s and disk_gb_per_s and 100 * gb_per_s / disk_gb_per_s},
        "one_file": {**one_file, "mb": one_file["bytes"] / 1e6}, "saves": [sharded, alone], "disk_gb_per_s": disk_gb_per_s,
        "files": list_files(contents, folder) if contents else [], "folders": folders,
        "slices": list_slices(contents, SHOWN) if contents else [], "reads": reads, "reads_result": reads_result,
        "half_written_taken": sum(row["taken"] == "yes" for row in folders[1:]) if folders else None,
    }  # fmt: skip
    bench.say_table(metrics["slices"], {"tensor": SHOWN, "rows": "rows", "file": "file", "begins": "from byte",
                                        "bytes": "bytes"})  # fmt: skip
    bench.say_table(reads, {"ranks": "ranks", "rank": "rank", "rows": "rows", "files": "files that it reads, by yours",
                            "numbers": "numbers", "right": "right"})  # fmt: skip
    bench.say_table(worlds, {"ranks": "continues with", "step_found": "from step", "loss_off": "loss off",
                             "load_s": "load s", "gb_per_s": "GB/s from disk"})  # fmt: skip
    say(f"with only the weights restored, the losses would be off by {metrics['model_only_off']:.2g}")
    if filesystem == "tmpfs":
        say("the folder is a tmpfs, which is in memory: the times say nothing about a disk")
    path = bench.write_metrics("distributed_checkpoints/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)
    shutil.rmtree(root)

world.wait_for_all()
dist.destroy_process_group()
