"""TFLOPS: how many operations a second a device really performs, by number format and size, in a burst and in a long run.

You will learn    why the format matters more than the size; which peak a percentage refers to; why a small card slows down
You will produce  TFLOP/s, % of the named peak, watts and limiter for each format and size; burst and sustained rate
Run it            python tflops_benchmark.py --sizes 256,512,1024 --dtypes float32,float64 --sustained-s 1      (a CPU)
                  python tflops_benchmark.py                                                                    (a GPU)
Your part         `rates` in my_rate.py; then explain burst against sustained with the columns clock, power and limiter
Reading           modules/04-benchmarking/lesson.md, "Percent of what?" and "Burst and sustained"
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import matmuls
import nvidia_smi
import own_part
import telemetry
import torch
from bench import say

SEED = 0
STEP_OPERATIONS = 6 * 124e6 * 1024  # of a training step: 6 for each parameter and token; GPT-2, 1,024 tokens

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="TFLOP/s by number format and size")
parser.add_argument(
    "--sizes", type=str, default="1024,2048,4096,8192", help="sides of the square matrices, separated by commas"
)
parser.add_argument(
    "--dtypes", type=str, default="float32,tf32,float16,bfloat16,float8_e4m3fn", help="number formats, separated by commas"
)
parser.add_argument("--sustained-s", type=float, default=30.0, help="seconds of the long run of each format; 0 leaves it out")
args = parser.parse_args()
try:
    sizes = sorted({int(size) for size in args.sizes.split(",")})
except ValueError:
    parser.error(f"--sizes {args.sizes}: whole numbers with commas, such as 1024,4096")
dtypes = [name.strip() for name in args.dtypes.split(",")]
if not 16 <= sizes[0] <= sizes[-1] <= 32768:
    parser.error(f"--sizes {args.sizes}: each must be from 16 to 32768")
if unknown := [name for name in dtypes if name not in matmuls.FORMATS]:
    parser.error(f"--dtypes: {unknown[0]} is not one of {', '.join(matmuls.FORMATS)}")
if not 0 <= args.sustained_s <= 3600:
    parser.error("--sustained-s must be from 0 to 3600")

# --- set-up ------------------------------------------------------------------------------------------------------------
learner_part = own_part.Process("my_rate.py")
device = bench.here()
on_gpu = device.type == "cuda"
gpu = gpus.find(torch.cuda.get_device_name(device)) if on_gpu else None
read = telemetry.source() if on_gpu else None
flush = bench.cache_flush(device)
if not on_gpu:
    say("No GPU here: a processor has no data sheet in this course, so there is no percentage. (local mode)")
elif gpu is None:
    say(f"{torch.cuda.get_device_name(device)} is not in the table: its peak is unknown, so there is no percentage")
derived = None
if on_gpu and gpu is None:
    driver_facts = (nvidia_smi.query(("name", "clocks.max.sm")) or [{}])[0]
    derived = gpus.derive(torch.cuda.get_device_properties(device), driver_facts.get("clocks.max.sm"))
if derived:
    peak_texts = (f"{dtype} {gpus.format_flops(peak)}" for dtype, peak in derived.tflops.items() if peak)
    say(f"derived from its processors and clock, it can do at most: {', '.join(peak_texts)}")


def limit(dtype: str) -> float | None:
    """Return the limit in TFLOP/s: the data sheet's or the derived peak for a GPU, and for a CPU a rate that no CPU reaches."""
    if gpu:
        return gpu.peak_tflops(dtype)
    if derived:
        return derived.tflops.get(dtype)
    widths = {"float32": 1.0, "float64": 0.5}
    return None if on_gpu or dtype not in widths else gpus.cpu_limit_tflops(os.cpu_count() or 1) * widths[dtype]


def speed(dtype: str, n: int, seconds: list[float], *, together: bool = False) -> dict:
    """Return the speed from the times of one product: by their median, or by the operations of all calls `together`. A speed
    above the limit is refused."""
    peak = gpu.peak_tflops(dtype) if gpu else None
    call_s = sum(seconds) / len(seconds) if together else bench.percentile(seconds, 50)
    tflops, max_tflops = gpus.matmul_tflops(n, call_s), limit(dtype)
    is_refused = max_tflops is not None and tflops > max_tflops
    shown_tflops = None if is_refused else tflops
    return {**bench.spread_ms(seconds), "tflops": shown_tflops, "speed": gpus.format_flops(shown_tflops), "refused": is_refused,
            "peak_tflops": peak, "percent_of_peak": 100 * tflops / peak if peak and not is_refused else None}  # fmt: skip


def summarize(samples: list[dict]) -> dict:
    """Return the mean clock, the mean power and the limiters from samples of the GPU. Each is None if there is no sample."""
    clocks, watts = ([sample[key] for sample in samples if sample[key] is not None] for key in ("clock_mhz", "power_w"))
    limiters = sorted({sample["limiter"] for sample in samples if sample["limiter"]})
    return {"clock_mhz": sum(clocks) / len(clocks) if clocks else None, "power_w": sum(watts) / len(watts) if watts else None,
            "limiter": ", ".join(limiters) if limiters else "none" if samples else None}  # fmt: skip


def time_long_run(call: Callable[[], object], seconds: float) -> tuple[list[float], list[dict]]:
    """Return the times in the second half of the calls of a long run, and the samples of the GPU in that half."""
    durations, deadline, recorder = [], time.monotonic() + seconds, None
    if read:
        with telemetry.Recorder(read, 2.0) as recorder:
            while time.monotonic() < deadline:
                durations += bench.time_each(call, device, 20)
    while not read and time.monotonic() < deadline:
        durations += bench.time_each(call, device, 2)
    return durations[len(durations) // 2 :], recorder.samples[len(recorder.samples) // 2 :] if recorder else []


def record_calls(call: Callable[[], object], seconds: float) -> list[tuple[float, float]]:
    """Return when each call of a long run began, on a clock that did not start at zero, and how many seconds it took."""
    calls, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline or not calls:
        began = time.monotonic()
        calls.append((began, bench.time_each(call, device, 1)[0]))
    return calls


def published_runs() -> list[dict]:
    """Return the float16 speeds that others measured on GPUs of the table."""
    return [{"gpu": row.gpu, "slowest": row.measured_fp16[0], "fastest": row.measured_fp16[1], "peak": row.fp16}
            for row in gpus.table() if row.measured_fp16]  # fmt: skip


def compare_published(summary: list[dict]) -> list[dict]:
    """Return rows for a plot: what was measured here, then the fastest and the slowest published run."""
    processor = "GPU" if on_gpu else "processor"
    fastest = next((row for row in summary if row["dtype"] == "float16"), summary[0])
    rows = [{"name": f"this {processor}, {fastest['dtype']}", "tflops": fastest["best_tflops"]}]
    return rows + [{"name": row["gpu"], "tflops": row["fastest"], "low": row["slowest"], "high": row["fastest"]}
                   for row in published_runs()]  # fmt: skip


# --- the experiment: first check the result, then a burst at each size and format, and last a long run of each format ---------
rows: list[dict] = []
sustained: list[dict] = []
skipped: list[dict] = []
for dtype in dtypes:
    if reason := matmuls.impossible(dtype, device):
        skipped.append({"dtype": dtype, "reason": reason})
        say(f"{dtype:<14} skipped: {reason}")
        continue
    for n in [*sizes, sizes[-1] - 1]:  # the size that is not a multiple of 8 comes last
        if dtype == "float8_e4m3fn" and n % 16:
            continue
        product = matmuls.prepare(dtype, n, device, SEED)
        product.call()
        wrong = product.error() / product.allowed
        times = bench.measure(product.call, device, budget_s=1.0 if on_gpu else 0.1, at_least=5, flush=flush)
        rate = speed(dtype, n, times)
        now = summarize([vars(read())]) if read else summarize([])
        rows.append({"dtype": dtype, "size": n, "aligned": n in sizes, **rate, "error_of_allowed": wrong, **now})
        say(f"{dtype:<14} {n:>6}² {rate['median_ms']:>10.3f} ms  {rate['speed'] or 'refused':>14}"
            + (f"  {rate['percent_of_peak']:.0f}% of {rate['peak_tflops']}" if rate["percent_of_peak"] else ""))  # fmt: skip

if not rows:
    sys.exit(f"nothing was measured: {device} multiplies none of {args.dtypes}")
# The long runs heat the device and bring it to its power limit, so they come after all bursts.
for dtype in dict.fromkeys(row["dtype"] for row in rows) if args.sustained_s else ():
    say(f"{dtype:<14} {sizes[-1]:>6}² for {args.sustained_s:g} s ...")
    times, samples = time_long_run(matmuls.prepare(dtype, sizes[-1], device, SEED).call, args.sustained_s)
    sustained.append({"dtype": dtype, "size": sizes[-1], **speed(dtype, sizes[-1], times, together=True), **summarize(samples)})

# --- your part: the rates of one more long run, of the first format ----------------------------------------------------------
own_format = rows[0]["dtype"]
calls = record_calls(matmuls.prepare(own_format, sizes[-1], device, SEED).call, args.sustained_s) if args.sustained_s else []
own_peak = limit(own_format) or 1.0
outcome = learner_part.run(None, "matmuls:use_part", limit_s=20, n=sizes[-1], calls=calls, peak=own_peak) if calls else None
own_rates = outcome.results[0] if outcome and outcome.state == "ran" else None
wrong_rates = matmuls.count_wrong_rates(own_rates, sizes[-1], calls, own_peak) if own_rates else None
own_text = None
if own_rates:
    own_burst, own_sustained = (gpus.format_flops(own_rates[name]) for name in ("burst", "sustained"))
    own_text = f"{own_burst}, {own_sustained or 'not settled'}"
    if own_sustained:
        say(f"yours: the rate had settled {own_rates['settled_s']:.2f} s after the start of a run of {args.sustained_s:g} s")
if outcome and outcome.state == "open":
    say("yours: not written yet; the table shows your burst and sustained rate of one more long run")
elif outcome and outcome.state == "failed":
    wrong_rates = 1
    say(f"yours: {outcome.text}")

# --- the summary ---------------------------------------------------------------------------------------------------------
summary = []
for dtype in dict.fromkeys(row["dtype"] for row in rows):
    dtype_rows = [row for row in rows if row["dtype"] == dtype and row["tflops"] is not None]
    best = max((row for row in dtype_rows if row["aligned"]), key=lambda row: row["tflops"], default=None)
    odd = next((row for row in dtype_rows if not row["aligned"]), None)
    even = next((row for row in dtype_rows if row["size"] == sizes[-1]), None)
    long = next((row for row in sustained if row["dtype"] == dtype), {})
    summary.append({
        "dtype": dtype, "best_tflops": best and best["tflops"], "best_size": best and best["size"],
        "best": best and best["speed"], "sustained": long.get("speed"),
        "sustained_percent_of_best": 100 * long["tflops"] / best["tflops"] if best and long.get("tflops") else None,
        "yours": own_text if dtype == own_format else None,
        "sustained_tflops": long.get("tflops"), "peak_tflops": gpu.peak_tflops(dtype) if gpu else None,
        "no_sheet": None if gpu else "gpus.json has none for this device",
        "best_percent": best and best["percent_of_peak"], "sustained_percent": long.get("percent_of_peak"),
        "unaligned_percent_of_aligned": 100 * odd["tflops"] / even["tflops"] if odd and even else None,
        "gflops_per_w": 1e3 * long["tflops"] / long["power_w"] if long.get("tflops") and long.get("power_w") else None,
        "clock_mhz": long.get("clock_mhz"), "power_w": long.get("power_w"), "limiter": long.get("limiter"),
    })  # fmt: skip
half = next((row for row in summary if row["dtype"] == "float16"), {})
single = next((row for row in summary if row["dtype"] == "float32"), {})
metrics = {
    **vars(args), "gpu": gpu.gpu if gpu else None, "peak": "data sheet, dense, at boost clock" if gpu else None,
    "derived_peaks": derived and derived.tflops,
    "rows": rows, "aligned": [row for row in rows if row["aligned"]], "sustained": sustained,
    "summary": summary, "skipped": skipped,
    "long_run": matmuls.trace_run(calls, sizes[-1], own_rates) if calls else [],
    "wrong_rates": wrong_rates, "part_fault": outcome.text if outcome else "",
    "refused": sum(row["refused"] for row in rows + sustained),
    "pairs_expected": len(sizes) * (len(dtypes) - len(skipped)), "pairs_measured": sum(row["aligned"] for row in rows),
    "float32_sustained_percent_of_best": single.get("sustained_percent_of_best"),
    "float32_unaligned_percent": single.get("unaligned_percent_of_aligned"),
    "step_at_sustained_s": STEP_OPERATIONS / (1e12 * single["sustained_tflops"]) if single.get("sustained_tflops") else None,
    "best_float32": single.get("best"), "best_float16": half.get("best"),
    "best_float32_tflops": single.get("best_tflops"), "best_float16_percent": half.get("best_percent"),
    "long_runs": len(sustained) if args.sustained_s else None,
    "published": published_runs(), "beside_published": compare_published(summary),
    "simulated": None if on_gpu else "a processor, not a GPU: the arithmetic is right, but the speeds are the processor's",
}  # fmt: skip
titles = {"dtype": "format", "best": "best", "best_size": "at", "sustained": "second half", "yours": "yours",
          "best_percent": "best %",
          "sustained_percent": "second half %", "power_w": "W", "limiter": "limiter"}  # fmt: skip
bench.say_table(summary, titles)
path = bench.write_metrics("tflops_benchmark/2", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
