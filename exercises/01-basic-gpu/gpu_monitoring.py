"""GPU monitoring: record four known loads and then another exercise, and see what the numbers do not show.

You will learn    how to watch a device; what "utilisation" counts, and that it does not say how much work gets done
You will produce  samples.csv and the curves of utilisation, memory and energy; on a GPU the output of nvidia-smi; metrics.json
Run it            python gpu_monitoring.py --model tiny
                  python gpu_monitoring.py --with 1.1 --hz 5
Your part         write my_meter.py, which then meters this recording; find two different loads that look the same
Reading           modules/01-basic-gpu/lesson-3-watching.md, "What the monitor shows"
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import engines
import gpus
import loads
import nvidia_smi
import own_part
import telemetry
import torch
from bench import say
from language_models import MODELS

SEED, MIB, BUSY_PERCENT = 0, 1 << 20, 20
SCRIPTS = {"1.1": "hello_gpu.py", "1.2": "first_inference.py"}
SMALL_OPTIONS = ["--small=256", "--size=768", "--repeats=3"]  # of 1.1, without a GPU

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="record a device while known loads and another exercise run on it")
parser.add_argument(
    "--hz", type=float, default=5.0, help="samples per second; NVML renews its figures about six times a second"
)
parser.add_argument("--with", type=str, default="1.2", choices=list(SCRIPTS), help="the exercise to watch", dest="watched")
parser.add_argument("--seconds", type=float, default=5.0, help="duration of each of the four loads")
parser.add_argument("--engine", type=str, default="auto", choices=["auto", "vllm", "transformers"], help="engine of 1.2")
parser.add_argument("--model", type=str, default="gpt2", choices=list(MODELS), help="model of 1.2; tiny needs no download")
parser.add_argument("--max-tokens", type=int, default=50, help="tokens of each answer in 1.2")
args = parser.parse_args()
if not 0.2 <= args.hz <= 50 or not 0.2 <= args.seconds <= 600:
    parser.error("--hz from 0.2 to 50 and --seconds from 0.2 to 600 are needed")

learner_part = own_part.Process("my_meter.py")

# --- set-up ------------------------------------------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
device = bench.here()
read = telemetry.source()
first = read()
say(f"watching {first.device} by {first.source}, {args.hz:g} times a second")
if device.type == "cpu":
    say("No GPU here: the figures are this computer's CPU and memory, including other programs. (local mode)")
gpu = gpus.find(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
limit_tflops = gpu.fp16 if gpu else gpus.cpu_limit_tflops(os.cpu_count() or 1) if device.type == "cpu" else None
if args.watched == "1.2":
    engines.choose(args.engine)  # waits until the node has installed vLLM, so that no idle GPU is recorded


def settings_of_other() -> list[str]:
    """Return the flags of the watched exercise."""
    if args.watched == "1.2":
        return [f"--engine={args.engine}", f"--model={args.model}", f"--max-tokens={args.max_tokens}"]
    return SMALL_OPTIONS if device.type == "cpu" else []


def watch_other() -> int:
    """Run the other exercise as a separate process, which ends with this script. Return its exit code."""
    other_script = Path(__file__).resolve().with_name(SCRIPTS[args.watched])
    folder = out / f"watched-{args.watched}"
    words = [sys.executable, "-u", str(other_script), *settings_of_other()]
    child = subprocess.Popen(words, env={**os.environ, "GPUCOURSE_OUT": str(folder)})
    signal.signal(signal.SIGTERM, lambda number, _frame: (child.terminate(), sys.exit(128 + number)))
    try:
        return child.wait()
    finally:
        child.terminate()
        child.wait()


# --- the experiment ----------------------------------------------------------------------------------------------------
work_by_phase: dict[str, loads.Work] = {}
with telemetry.Recorder(read, args.hz) as recorder:
    for name, load in loads.LOADS.items():
        with recorder.during(name):
            work_by_phase[name] = load(device, args.seconds)
        say(f"{recorder.seconds:6.1f} s  {name} done")
    picture = nvidia_smi.screen() if device.type == "cuda" else None
    say(f"{recorder.seconds:6.1f} s  now watching exercise {args.watched}:\n")
    watching = f"exercise {args.watched}"
    with recorder.during(watching):
        exit_code = watch_other()
    ticks = int(recorder.seconds * args.hz)

samples = [{**sample, "memory_used_mib": (sample["memory_used_bytes"] or 0) / MIB or None} for sample in recorder.samples]
if picture:
    (out / "nvidia-smi.txt").write_text(picture, encoding="utf-8")
with (out / "samples.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, fieldnames=list(samples[0]))
    writer.writeheader()
    writer.writerows(samples)


def select(phase: str, key: str) -> list[float]:
    """Return the values of `key` in a phase. The first sample is left out, because it describes the time before the phase."""
    return [sample[key] for sample in [row for row in samples if row["phase"] == phase][1:] if sample[key] is not None]


def figures(phase: str) -> dict:
    """Return one row: the monitor's readings, and the work done."""
    busy, power, heat = select(phase, "utilisation_percent"), select(phase, "power_w"), select(phase, "temperature_c")
    memory, work = select(phase, "memory_used_bytes"), work_by_phase.get(phase)
    tflops = work and work.operations / work.seconds / 1e12
    is_refused = bool(tflops and limit_tflops and tflops > limit_tflops)
    return {
        "phase": phase, "samples": len(busy),
        "utilisation_min_percent": min(busy, default=None), "utilisation_max_percent": max(busy, default=None),
        "utilisation_mean_percent": sum(busy) / len(busy) if busy else None,
        "utilisation_p95_percent": bench.percentile(busy, 95) if busy else None,
        "memory_max_mib": max(memory) / MIB if memory else None, "memory_min_mib": min(memory) / MIB if memory else None,
        "power_mean_w": sum(power) / len(power) if power else None, "temperature_max_c": max(heat, default=None),
        "gflop_per_s": None if is_refused or tflops is None else 1e3 * tflops,
        "gb_per_s": work.moved / work.seconds / 1e9 if work else None, "refused": is_refused,
    }  # fmt: skip


# --- your part: the same recording, metered by you ---------------------------------------------------------------------
momentary = "power_w" if first.power_w is not None else "memory_used_bytes"  # without a power reading: the memory in use
scale = 1.0 if momentary == "power_w" else 2**30
recording = [
    (1e3 * row["at_s"], None if row[momentary] is None else row[momentary] / scale, row["utilisation_percent"])
    for row in samples
]
while recording and recording[0][1] is None:
    recording.pop(0)
while recording and recording[-1][1] is None:
    recording.pop()
outcome = learner_part.run(None, "metering:meter", recording=recording)
yours = outcome.results[0] if outcome.state == "ran" else None
if outcome.state == "open":
    say("my_meter.py is open: once it is written, it meters this recording, in a row 'yours'")
elif outcome.state == "failed":
    say(f"your meter gave no figures: {outcome.text}")


metered_rows = [{"line": "readings", "at_s": at_ms / 1e3, "value": value} for at_ms, value, _ in recording if value is not None]
if yours and metered_rows:
    ends_s = {metered_rows[0]["at_s"], metered_rows[-1]["at_s"]}
    metered_rows += [{"line": "mean, yours", "at_s": end_s, "value": yours["mean_power_w"]} for end_s in sorted(ends_s)]
phases_by_ms = {1e3 * row["at_s"]: row["phase"] for row in samples}
readings = [(at_ms, value) for at_ms, value, _ in recording if value is not None]
idle_values = [value for at_ms, value in readings if phases_by_ms[at_ms] == "idle"]
idle_w = sum(idle_values) / len(idle_values) if idle_values else 0.0


def beyond_idle(line: str, at_ms: float, energy: float) -> dict:
    """Return a row of the plot: the energy so far, minus the energy that the idle device would have used."""
    return {"line": line, "at_s": at_ms / 1e3, "energy": energy - idle_w * (at_ms - readings[0][0]) / 1e3}


sums = itertools.accumulate(value for _, value in readings)
energy_rows = [
    beyond_idle("plain mean x time", at_ms, value_sum / count * (at_ms - readings[0][0]) / 1e3)
    for count, ((at_ms, _), value_sum) in enumerate(zip(readings, sums, strict=True), start=1)
] + [
    beyond_idle(f"yours, {phases_by_ms[at_ms] or 'between loads'}", at_ms, energy)
    for at_ms, energy in (yours or {}).get("so_far", [])
]


def total() -> list[dict]:
    """Return rows of the whole recording: the plain means of all samples, and your figures."""
    rows: list[dict] = [{"phase": "all", "samples": len(samples)}]
    for key, name in (("utilisation_percent", "utilisation_mean_percent"), ("power_w", "power_mean_w")):
        values = [row[key] for row in samples if row[key] is not None]
        rows[0][name] = sum(values) / len(values) if values else None
    if yours:
        row = {"phase": "all, yours", "samples": len(recording), "utilisation_mean_percent": yours["utilisation_percent"]}
        watts = {"power_mean_w": yours["mean_power_w"], "energy_j": yours["energy_j"]}
        rows.append(row | (watts if momentary == "power_w" else {"memory_gib_s": yours["energy_j"]}))
    return [{"energy_j": None, "memory_gib_s": None} | row for row in rows]


# --- the record ----------------------------------------------------------------------------------------------------------
phases = [figures(phase) for phase in [*loads.LOADS, watching]]
by_load = {row["phase"]: row["utilisation_mean_percent"] for row in phases}
if (by_load["idle"] or 0.0) > BUSY_PERCENT:
    say(f"While no load ran, the device was at {by_load['idle']:.0f}%: other programs use it, and are part of every figure")
best = max((row["gflop_per_s"] or 0.0) for row in phases)
for row in phases:
    is_measured = row["gflop_per_s"] is not None and best
    row["work_percent"] = 100 * row["gflop_per_s"] / best if is_measured else None  # of the arithmetic that the device just did
metrics = {
    "hz": args.hz, "with": args.watched, "seconds": args.seconds, "model": args.model if args.watched == "1.2" else None,
    "readings": phases + total(),
    "your_meter": yours["verdict"] if yours else outcome.text if outcome.state == "failed" else None,
    "metered": momentary,
    "metered_rows": metered_rows, "energy_rows": energy_rows,
    "busywork_over_arithmetic": (by_load["busywork"] or 0.0) / max(by_load["arithmetic"] or 0.0, 1.0),
    "source": first.source, "watched_device": first.device,
    "source_is_the_devices": (first.source == "cpu") == (device.type == "cpu"), "phases": phases, "samples": samples,
    "load_samples": [sample for sample in samples if sample["phase"] in loads.LOADS],
    "busywork_utilisation_percent": by_load["busywork"], "idle_utilisation_percent": by_load["idle"],
    "samples_due": ticks, "samples_taken_percent": 100 * len(samples) / max(1, ticks), "samples_late": recorder.missed,
    "watched": phases[-1], "watched_exit_code": exit_code, "refused": sum(row["refused"] for row in phases),
    "least_samples": min(row["samples"] for row in phases),
    "busywork_gflop_per_s": work_by_phase["busywork"].operations / work_by_phase["busywork"].seconds / 1e9,
    "flop_per_byte": phases[2]["gflop_per_s"] and phases[2]["gflop_per_s"] / phases[1]["gb_per_s"],
    "simulated": None if device.type == "cuda" else "the CPU is watched instead of a GPU",
}  # fmt: skip
titles = {"phase": "load", "utilisation_mean_percent": "utilisation %", "gflop_per_s": "GFLOP/s", "gb_per_s": "GB/s",
          "memory_max_mib": "memory MiB",
          "power_mean_w": "power W", "energy_j": "energy J", "memory_gib_s": "GiB s",
          "temperature_max_c": "max C"}  # fmt: skip
bench.say_table(metrics["readings"], titles)
path = bench.write_metrics("gpu_monitoring/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
sys.exit(1 if exit_code else 0)
