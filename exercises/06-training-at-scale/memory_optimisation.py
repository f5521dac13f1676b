"""Memory optimisation: a training run that does not fit, what each technique saves, and a step of yours that fits.

You will learn    where the memory of training goes, what a step can save, what that costs, and what cannot be saved
You will produce  the peak of ten ways to train, your own step in the device's memory, an estimate for a large model
Run it            python memory_optimisation.py --layers 4 --width 128 --length 128 --budget-mib 32 --steps 2      (a CPU)
                  python memory_optimisation.py                                                                   (a GPU)
Your part         predict; then change `step` in my_step.py, so that it fits, and write `place` in my_placement.py
Reading           modules/06-training-at-scale/lesson.md, lesson-2-out-of-memory.md
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import sys
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import estimates
import my_step
import placement
import torch
from bench import say
from device_memory import GpuMemory, SimulatedMemory
from techniques import LONG, MENU, MIB, PLAIN, SEED, Measurement, Shape, Technique, drop_weights, find_reference, measure, train

LONG_TECHNIQUES = ("plain step", "checkpoint every block", "checkpoint, 16 micro-batches")
SIMULATED_MIB, ENDLESS = 32, 1 << 44  # the default device of the exercise; one that is never full

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="the memory of training, technique by technique")
parser.add_argument(
    "--budget-mib",
    type=int,
    default=0,
    help="MiB of memory of the device on which your step runs; 0 means all memory of the GPU",
)
parser.add_argument("--layers", type=int, default=24, help="layers of the transformer")
parser.add_argument(
    "--width", type=int, default=1536, help="numbers that represent a token between two layers; a multiple of 32"
)
parser.add_argument("--length", type=int, default=1024, help="tokens in a sequence")
parser.add_argument("--batch-size", type=int, default=16, help="sequences in a step")
parser.add_argument("--steps", type=int, default=3, help="steps of each technique; the first step is not measured")
parser.add_argument(
    "--fit-on", default="t4", choices=sorted(estimates.GPUS), help="GPU for which the largest batch is estimated"
)
args = parser.parse_args()
if args.width < 32 or args.width % 32:
    parser.error(f"--width must be a multiple of 32, the width of a head: {args.width} is not")
if args.steps < 2 or min(args.layers, args.length, args.batch_size) < 1:
    parser.error("--steps must be at least 2 (the first creates the moments), and --layers, --length, --batch-size at least 1")
if args.batch_size % max(technique.parts for technique in MENU):
    parser.error(f"--batch-size must be a multiple of 16, the most micro-batches of the menu: {args.batch_size} is not")
if args.budget_mib < 0:
    parser.error("--budget-mib must not be below 0")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
if not on_gpu:
    torch.set_num_threads(1)  # with small layers more threads cost more than they gain
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
shape = Shape(args.layers, args.width, args.length, args.batch_size)
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
gpu_memory = GpuMemory() if on_gpu else None
budget = args.budget_mib * MIB or (gpu_memory.capacity() if gpu_memory else SIMULATED_MIB * MIB)


def mib(size: int | None) -> float | None:
    return None if size is None else size / MIB


def run_menu() -> list[tuple[Technique, Measurement]]:
    """Return every technique with its measurement, on a simulated device that is never full, or on a GPU with its own
    memory."""
    results = []
    for technique in MENU:
        step = functools.partial(train, technique)
        measurement = measure(step, shape, args.steps, gpu_memory or SimulatedMemory(ENDLESS), device, technique)
        say(
            f"{technique.name:<32} "
            + (measurement.error or f"peak {measurement.peak / MIB:>10,.1f} MiB   {measurement.flops / 1e9:>10,.2f} GFLOP")
        )
        results.append((technique, measurement))
        drop_weights(results)
    return results


def make_row(technique: Technique, measurement: Measurement, reference: Measurement) -> dict:
    """Return one row of the menu for the record. If memory ran out, the values that could not be measured are null."""
    times = bench.spread_ms(measurement.seconds) if measurement.seconds else {}
    gap = None if measurement.error else max(abs(a - b) for a, b in zip(measurement.losses, reference.losses, strict=True))
    return {
        "technique": technique.name, "peak_mib": mib(measurement.peak),
        "held_mib": mib(measurement.held),
        "flops_of_plain": None if measurement.error else measurement.flops / reference.flops,
        "median_ms": times.get("median_ms"), "loss_gap": gap, "out_of_memory": measurement.error is not None,
        **{f"{stage}_mib": mib(measurement.stages.get(stage)) for stage in ("forward", "backward", "optimizer")},
    }  # fmt: skip


def run_long() -> tuple[list[dict], str | None]:
    """Run the plain step, checkpoints, micro-batches with checkpoints, and the learner's step on one long sequence with a large
    vocabulary. Return their rows and the learner's error.
    """
    ways = {item.name: functools.partial(train, item) for item in MENU if item.name in LONG_TECHNIQUES}
    rows, failure = [], None
    for name, way in {**ways, **({"your step": call_yours} if yours and not yours.error else {})}.items():
        try:
            result = measure(way, LONG, 2, gpu_memory or SimulatedMemory(ENDLESS), device)
        except Exception as error:  # noqa: BLE001  # as in run_yours
            traceback.print_exc(file=sys.stdout)
            failure = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
            continue
        rows.append({"technique": name, "peak_mib": mib(result.peak), "flops": result.flops})
    for row in rows:
        peaks = row["peak_mib"], rows[0]["peak_mib"]
        row["peak_of_plain"] = peaks[0] / peaks[1] if all(peaks) else None
        row["flops_of_plain"] = row["flops"] / rows[0]["flops"] if row["flops"] and rows[0]["flops"] else None
    return rows, failure


def run_yours() -> tuple[Measurement | None, str | None]:
    """Run the learner's step on a device of the exercise's size. Return its row and, unless memory ran out, its error."""
    if gpu_memory:
        record_snapshot("begin")
    if gpu_memory and args.budget_mib:
        torch.cuda.set_per_process_memory_fraction(min(1.0, budget / gpu_memory.capacity()))
    try:
        return measure(call_yours, shape, args.steps, gpu_memory or SimulatedMemory(budget), device), None
    except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
        traceback.print_exc(file=sys.stdout)
        return None, f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    finally:
        if gpu_memory:
            record_snapshot("end")
        if gpu_memory and args.budget_mib:
            torch.cuda.set_per_process_memory_fraction(1.0)


def record_snapshot(word: str) -> None:
    """Start to record every GPU allocation, or stop and write the file for pytorch.org/memory_viz."""
    record = getattr(torch.cuda.memory, "_record_memory_history", None)
    dump = getattr(torch.cuda.memory, "_dump_snapshot", None)
    if not (record and dump):
        say(f"no memory snapshot: torch {torch.__version__} cannot write one")
    elif word == "begin":
        record(max_entries=20_000)  # each with its line: a few megabytes in all
    else:
        dump(str(out / "memory-snapshot.pickle"))
        record(enabled=None)


def call_yours(model, batch, optimizer, device, _enter) -> object:
    return my_step.step(model, batch, optimizer, device)


def leaves_room(reference: Measurement, plain_peak: int) -> bool:
    """Return whether 0.3 of the plain peak is possible. The optimizer needs the floor and a copy of the weights."""
    return 1.25 * reference.held <= 0.28 * plain_peak


def compare_yours(learner: Measurement | None, reference: Measurement, plain_peak: int | None) -> dict:
    """Return the facts about the learner's step that the checks need. They are null if it was not measured."""
    if learner is None or learner.error:
        return {"fits": None if learner is None else False, "out_of_memory": None if learner is None else True} | dict.fromkeys(
            ("peak_mib", "peak_of_plain", "above_floor_times", "flops_of_plain", "loss_off", "parameter_off", "micro_batches")
        )
    losses = [abs(value - right) for value, right in zip(learner.losses, reference.losses, strict=True)]
    weights = [(value - right).abs().max().item() for value, right in zip(learner.weights, reference.weights, strict=True)]
    return {
        "fits": True, "out_of_memory": False, "peak_mib": mib(learner.peak),
        "peak_of_plain": learner.peak / plain_peak if plain_peak and leaves_room(reference, plain_peak) else None,
        "above_floor_times": (plain_peak - reference.held) / (learner.peak - reference.held) if plain_peak else None,
        "flops_of_plain": learner.flops / reference.flops, "loss_off": max(losses), "parameter_off": max(weights),
        "micro_batches": learner.calls or None,
    }  # fmt: skip


def find_saving(technique: str, other: str) -> float | None:
    """Return by what percentage the peak of a technique is lower than another one's, or None if one of the two did not fit."""
    peaks = {item.name: measurement.peak for item, measurement in menu}
    return 100 * (1 - peaks[technique] / peaks[other]) if peaks[technique] and peaks[other] else None


# --- the experiment ----------------------------------------------------------------------------------------------------
device_text = torch.cuda.get_device_name(device) if on_gpu else "a simulated device that is never full"
say(f"{args.layers} layers, {args.width} wide, {args.batch_size} sequences of {args.length} tokens, on {device_text}")
menu = run_menu()
if (fitting := find_reference(menu)) is None:
    sys.exit("no technique of the menu fits on this GPU: take fewer --layers, or a smaller --width or --length")
reference_technique, reference = fitting
floor = reference.held
measured_estimate = estimates.estimate(shape, reference_technique)
plain_estimate = measured_estimate if reference_technique is PLAIN else estimates.estimate(shape, PLAIN)
plain_peak = menu[0][1].peak or (plain_estimate.total if plain_estimate else None)
rows = [make_row(technique, measurement, reference) for technique, measurement in menu]

say(f"\nyour step, on a device of {budget / MIB:,.0f} MiB:")
yours, broken = run_yours()
comparison = compare_yours(yours, reference, plain_peak)
if yours:
    rows.append(make_row(Technique("your step"), yours, reference))  # its stages are not known: it does not announce them
if yours and yours.error:
    say(f"out of memory: {yours.error}")
elif yours:
    say(
        f"it fits: peak {comparison['peak_mib']:,.1f} MiB, {comparison['flops_of_plain']:.2f} times the plain step's operations"
    )

long_rows, long_error = run_long()
broken = broken or long_error
comparison["long_of_plain"] = next((row["peak_of_plain"] for row in long_rows if row["technique"] == "your step"), None)

columns = {"technique": "technique", "forward_mib": "forward", "backward_mib": "backward", "optimizer_mib": "optimizer",
           "peak_mib": "peak MiB", "flops_of_plain": "operations", "loss_gap": "loss off"}  # fmt: skip
bench.say_table(rows, columns, title="Peak memory of each stage of a step, in MiB:")
long_columns = {"technique": "technique", "peak_mib": "peak MiB", "peak_of_plain": "of plain", "flops_of_plain": "operations"}
bench.say_table(
    long_rows, long_columns, title=f"One sequence of {LONG.length:,} tokens, and a vocabulary of {LONG.vocabulary:,}:"
)
say(f"weights, gradients and two moments: {floor / MIB:,.2f} MiB, the floor")

placements, placed, place_broken = placement.compare()
titles = {"placement": "recomputed", "blocks": "blocks", "peak": "peak bytes", "operations": "operations", "fits": "fits"}
bench.say_table(placements, titles, title=f"Six unequal blocks, with room for {placement.LIMIT:,} bytes of activations:")
if place_broken != "no error":
    say(f"my_placement.py: {place_broken}. With it, the table has a row of yours")

# --- an estimate without a device ----------------------------------------------------------------------------------------
large = estimates.plan_large()
room = estimates.room_on(args.fit_on)
largest = {key: estimates.find_largest_batch(row, estimates.LARGE.batch, room) for key, row in large.items()} if large else None
plan_rows = estimates.list_rows(large) if large else []
if largest:
    say(f"\na model of the size of GPT-2 small, estimated with fake tensors; largest batch on {args.fit_on}: {largest[False]}, "
        f"with every block checkpointed {largest[True]}")  # fmt: skip
else:
    say(f"\nno estimate: {estimates.MISSING}")
off = None
if measured_estimate:
    off = 100 * abs(measured_estimate.total - reference.peak) / reference.peak

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "menu": rows, "long": long_rows, "techniques": len(MENU) + bool(yours), "yours": comparison,
    "step_broken": broken or "no error",
    "checkpoints_save_percent": find_saving("checkpoint, 16 micro-batches", "16 micro-batches"),
    "placements": placements, "placed": placed, "place_broken": place_broken,
    "out_of_memory": yours.error if yours else None, "floor_mib": mib(floor),
    "predicted": plan_rows,
    "largest_batch_on": largest[False] if largest else None,
    "largest_batch_checkpointed": largest[True] if largest else None,
    "prediction_off_percent": off,
    "measured_peak_mib": mib(reference.peak) if on_gpu else None,
    "gpu_peak_of_plain": comparison["peak_of_plain"] if on_gpu else None,
    "simulated": None if on_gpu else f"{budget / MIB:,.0f} MiB",
}  # fmt: skip
if not on_gpu:
    say("\nThe device is simulated: it counts tensors, byte by byte. Times are for one core. (device: cpu)")
for part_file in (Path(my_step.__file__).with_name(name) for name in ("my_step.py", "my_placement.py")):
    if part_file.parent.resolve() != out.resolve():
        shutil.copyfile(part_file, out / part_file.name)  # the judged file, kept with the verdict
path = bench.write_metrics("memory_optimisation/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
