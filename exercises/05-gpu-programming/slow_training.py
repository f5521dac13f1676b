"""Slow training: eight faults cost most of its time. Find them by measuring, repair them, and keep the results.

You will learn    to profile before guessing; what a Python loop and reading a value cost; why one repair gains little
You will produce  the speed-up of your training over the one provided, measured alternately on the same data; both profiles
Run it            python slow_training.py --samples 2048     (a CPU)
                  python slow_training.py                    (a GPU)
Your part         predict how many values it reads; then rewrite train in my_training.py
Reading           modules/05-gpu-programming/lesson-11-slow-training.md
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import shutil
import sys
import time
import traceback
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import my_training
import pipeline
import torch
import training_watch
from bench import say
from pipeline import BATCH, FAULTS, train_delivered
from profiles import limit_samples_per_s, take_profile

SEED, WARM, WATCHED, ABLATED, PROFILED = 100, 128, (256, 384), 512, 256  # the seed, then numbers of samples
MEDALS = (("gold", 15.0), ("silver", 10.0), ("bronze", 5.0))  # each with the speed-up that earns it

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="slow training against yours: the same results, in how much less time?")
parser.add_argument("--samples", type=int, default=16384, help="samples in the timed training")
parser.add_argument("--epochs", type=int, default=2, help="number of times that each sample is used")
parser.add_argument("--rounds", type=int, default=3, help="timed rounds; in each, both versions get the same new data")
args = parser.parse_args()
if args.samples < BATCH or args.samples % BATCH or args.epochs < 1 or args.rounds < 1:
    parser.error(f"--samples must be a multiple of {BATCH}, the batch, and --epochs and --rounds at least 1")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
if not on_gpu:
    torch.set_num_threads(1)  # with small layers more threads cost more than they gain, and both versions must have the same
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32, on every GPU
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
steps = args.samples // BATCH
broken = None


def time_training(train, data, epochs: int) -> tuple[float, object]:
    """Return the seconds of one training run, until the device has finished all its work, and the result of the run.

    Raises ValueError unless the run called the model once in each step: otherwise, its result comes from a file or an earlier
    run.
    """
    calls: list[None] = []

    def count(model: torch.nn.Module) -> None:
        model.register_forward_hook(lambda *_: calls.append(None))

    pipeline.watchers.append(count)
    try:
        if on_gpu:
            torch.cuda.synchronize()
        start = time.perf_counter()
        outcome = train(*data, epochs, device)
        if on_gpu:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    finally:
        pipeline.watchers.remove(count)
    if len(calls) != (sample_count := epochs * -(-len(data[0]) // BATCH)):
        raise ValueError(
            f"a timed run called the model {len(calls):,} times, instead of once in each of {sample_count:,} steps"
        )
    return seconds, outcome


def time_in_turns(ways: dict, samples: int, epochs: int, rounds: int) -> dict[str, list[tuple[float, object]]]:
    """Return seconds and results of each way in each round. Each round gets new data, the same for all ways."""
    for train in ways.values():  # the first steps also allocate memory and choose kernels, so no version's are timed
        train(*pipeline.make_data(WARM, SEED), 1, device)
    times_by_name: dict[str, list[tuple[float, object]]] = {name: [] for name in ways}
    for number in range(rounds):
        data = pipeline.make_data(samples, SEED + 1 + number)
        for name, train in ways.items():
            times_by_name[name].append(time_training(train, data, epochs))
    return times_by_name


def compare(delivered: list, learner_result: list) -> tuple[float, float]:
    """Return the largest difference in losses and accuracies, and in weights, over all rounds."""
    losses_off = weights_off = 0.0
    for (_, reference), (_, outcome) in zip(delivered, learner_result, strict=True):
        *right_numbers, right_weights = training_watch.convert_outcome(reference)
        *numbers, weights = training_watch.convert_outcome(outcome)
        for right_number, number in zip(right_numbers, numbers, strict=True):
            same = right_number.shape == number.shape
            losses_off = max(losses_off, (right_number - number).abs().max().item() if same else float("inf"))
        same = right_weights.shape == weights.shape
        weights_off = max(weights_off, (right_weights - weights).abs().max().item() if same else float("inf"))
    return losses_off, weights_off


def summarise(measurements: list[tuple[float, object]]) -> dict:
    median = bench.percentile([seconds for seconds, _ in measurements], 50)
    speed = limit_samples_per_s(args.samples * args.epochs / median, pipeline.make_model(), device, torch.float32)
    return {"median_s": median, "samples_per_s": speed}


def write_profile(train, name: str) -> float | None:
    """Write a file that shows where Python's functions and torch's operations spend time. Return the GPU's busy percentage."""
    data = pipeline.make_data(PROFILED, SEED)
    train(*data, 1, device)
    calls = cProfile.Profile()
    calls.runcall(train, *data, 1, device)
    text = io.StringIO()
    pstats.Stats(calls, stream=text).strip_dirs().sort_stats("tottime").print_stats(15)
    profile = take_profile(lambda: train(*data, 1, device), device, top=10)
    (out / name).write_text(f"{text.getvalue().strip()}\n\n{profile.text}", encoding="utf-8")
    return profile.gpu_busy_percent


def repair_one_by_one() -> list[dict]:
    """Return two factors for each fault: the speed-up from this repair alone, and the slow-down from this fault alone.

    Each time is the shorter of two.
    """
    everything, data = set(FAULTS), pipeline.make_data(min(args.samples, ABLATED), SEED)
    versions: list[set[int]] = [set(), everything]
    for number in FAULTS:
        versions += [{number}, everything - {number}]
    best = [float("inf")] * len(versions)
    for _ in range(2):
        for place, repairs in enumerate(versions):
            seconds, _outcome = time_training(
                lambda *arguments, chosen_repairs=repairs: train_delivered(*arguments, chosen_repairs), data, 2
            )
            best[place] = min(best[place], seconds)
    none, all_repaired, *partial = best
    return [
        {"fault": number, "what": words, "alone_repaired": none / single_repair, "alone_left": unrepaired / all_repaired}
        for (number, words), single_repair, unrepaired in zip(FAULTS.items(), partial[::2], partial[1::2], strict=True)
    ]


# --- the experiment ----------------------------------------------------------------------------------------------------
device_text = torch.cuda.get_device_name(device) if on_gpu else "the CPU, one thread"
say(f"training on {device_text}: {args.epochs} epochs of {args.samples:,} samples, {steps:,} steps of {BATCH} each")
watched = min(max(args.samples, WATCHED[0]), WATCHED[1])
original = training_watch.watch(train_delivered, watched, SEED, 2, device)
values_read = original.values_read_per_step * steps
say(
    f"as delivered, a step has {original.operations_per_step:,.0f} operations; it reads "
    f"{original.values_read_per_step:,.0f} values"
)

measured, own_watch, speedup, losses_off, weights_off, medal = None, None, None, None, None, None
try:
    own_watch = training_watch.watch(my_training.train, watched, SEED, 2, device)
    ways = {"delivered": train_delivered, "yours": my_training.train}
    measured = time_in_turns(ways, args.samples, args.epochs, args.rounds)
    losses_off, weights_off = compare(measured["delivered"], measured["yours"])
except Exception as error:  # noqa: BLE001  # the learner's code may fail in any way; the error is shown
    broken = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    traceback.print_exc(file=sys.stdout)
    measured = time_in_turns({"delivered": train_delivered}, args.samples, args.epochs, 1)

delivered = summarise(measured["delivered"])
yours = summarise(measured["yours"]) if not broken else None
rows = []
for number, words in FAULTS.items():
    is_gone = not own_watch.has(number) if own_watch else None
    rows.append({
        "fault": number, "what": words, "how_found": training_watch.HOW[number], "before": original.counts[number],
        "after": own_watch.counts[number] if own_watch else None, "gone": is_gone,
    })  # fmt: skip
titles = {"fault": "fault", "what": "what", "before": "before", "after": "yours"}
bench.say_table(rows, titles, title="The eight faults, as the operations that reach torch show them (per step):")

ablation = repair_one_by_one()
worst = max(ablation, key=lambda row: row["alone_repaired"])
busy_before = write_profile(train_delivered, "profile-before.txt")
busy = write_profile(train_delivered if broken else my_training.train, "profile-after.txt")
if yours and yours["samples_per_s"]:
    speedup = delivered["median_s"] / yours["median_s"]
    same = max(losses_off, weights_off) <= 1e-4
    medal = next((name for name, least in MEDALS if speedup >= least), "none yet") if same else "none: other results"
    say(f"\ndelivered {delivered['median_s']:.3f} s, yours {yours['median_s']:.3f} s: {speedup:.1f} times as fast")
    say(f"losses off by {losses_off:.1e}, weights by {weights_off:.1e}; score: {medal} (bronze 5, silver 10, gold 15 times)")

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "steps_per_epoch": steps, "values_read_delivered": values_read, "delivered": delivered, "yours": yours,
    "training_broken": broken or "no error", "speedup": speedup, "losses_off": losses_off,
    "weights_off": weights_off, "score": medal,
    "score_rows": [{"training": "delivered", **delivered, "score": None}]
    + ([{"training": "yours", **yours, "score": medal}] if yours else []),
    "samples_off": own_watch.samples_missing + own_watch.samples_repeated if own_watch else None,
    "low_precision_matmul_percent": own_watch.half_percent if own_watch else None,
    "faults": rows, "faults_gone": sum(row["gone"] for row in rows) if own_watch else None,
    "ablation": ablation, "ablation_worst": worst["fault"],
    "items_per_step": own_watch.values_read_per_step if own_watch else None,
    "operations_per_step": own_watch.operations_per_step if own_watch else None,
    "float64_results": own_watch.counts[2] if own_watch else None,
    "live_tensors_growth_per_step": own_watch.counts[4] if own_watch else None,
    "weight_copies_per_step": own_watch.counts[6] if own_watch else None,
    "blocking_moves_per_step": own_watch.blocking_moves_per_step if own_watch and on_gpu else None,
    "gpu_busy_percent": busy, "gpu_busy_percent_delivered": busy_before,
    "refused": sum(row["samples_per_s"] is None for row in (delivered, yours) if row),
}  # fmt: skip
if (part_file := Path(my_training.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / "my_training.py")  # the judged file, kept with the verdict
if not on_gpu:
    say("\nThese are the speeds of one core of this processor. (device: cpu)")
path = bench.write_metrics("slow_training/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
