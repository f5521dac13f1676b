"""Hello GPU: is there one, how do you use it, and when is it worth it? Two matrix products give the answer.

You will learn    how to find a GPU; why the first call is slow; why to time a GPU with events; when copying cancels the gain
You will produce  times of a small and a large product: reference, first call, warm, warm with copies; metrics.json
Run it            python hello_gpu.py
                  python hello_gpu.py --small 200 --size 3000 --dtype float16
Your part         write my_timer.py, which then times the same products; find the size from which the GPU pays off
Reading           modules/01-basic-gpu/lesson.md, "Why is the GPU faster?"
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import own_part
import torch
from bench import say

SEED, ROWS, CPU = 0, 64, torch.device("cpu")
WITH_COPIES = "warm, with copies (pageable memory)"  # nothing here is pinned: see the lesson
# How far a product may be from the exact one, as a share of its largest element: the rounding error of the dtype, no more.
TOLERANCE = {"float64": 1e-12, "float32": 1e-4, "bfloat16": 2e-2, "float16": 4e-3}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="two matrix products, cold, warm, and with copies")
parser.add_argument("--small", type=int, default=1000, help="side of the small matrices")
parser.add_argument("--size", type=int, default=5000, help="side of the large matrices")
parser.add_argument("--dtype", type=str, default="float32", choices=list(TOLERANCE), help="type of all numbers")
parser.add_argument("--repeats", type=int, default=20, help="the smallest number of warm calls; more if they fit into 0.3 s")
args = parser.parse_args()
if not 1 <= args.small < args.size or args.repeats < 1:
    parser.error("1 <= --small < --size and --repeats >= 1 are needed")


def is_slow_on_cpu(dtype: torch.dtype) -> bool:
    """Return whether a product in `dtype` takes over ten times as long as in float32, because the CPU has no fast kernel for
    it."""
    a = torch.ones(128, 128)
    wide, narrow = (min(bench.measure(lambda m=m: m @ m, CPU, budget_s=0.02, threads=1)) for m in (a, a.to(dtype)))
    return narrow > 10 * wide


learner_part = own_part.Process("my_timer.py")

# --- is it there? ------------------------------------------------------------------------------------------------------
device, dtype, cores = bench.here(), getattr(torch, args.dtype), torch.get_num_threads()
torch.backends.cuda.matmul.allow_tf32 = False  # float32 means float32: 23 bits of mantissa, not 10
on_gpu = device.type == "cuda"
gpu = gpus.find(torch.cuda.get_device_name(device)) if on_gpu else None
if on_gpu and args.dtype == "bfloat16" and not torch.cuda.is_bf16_supported(including_emulation=False):
    sys.exit(f"{torch.cuda.get_device_name(device)} has no bfloat16 in hardware and would only emulate it: use float16")
say(f"torch.cuda.is_available() says {torch.cuda.is_available()}; this script computes on {device}")
if not on_gpu:
    say(f"No GPU here: {cores} CPU threads stand in for the fast device, one thread for the slow one. (local mode)")
half = dtype in {torch.float16, torch.bfloat16}
if half and not on_gpu and is_slow_on_cpu(dtype):
    sys.exit(f"this processor has no fast kernel for {args.dtype}: {args.size} x {args.size} would take minutes. "
             "Use float32 or float64 here, and 16 bits on a GPU")  # fmt: skip
# Many CPUs multiply 16-bit numbers a hundred times more slowly than 32-bit ones: compared with a GPU they use float32.
reference_dtype = torch.float32 if half and on_gpu else dtype
kind = str(reference_dtype).removeprefix("torch.")
fast = "GPU" if on_gpu else f"CPU, {cores} threads"
reference = f"CPU, {cores} threads, {kind}" if on_gpu else f"CPU, 1 thread, {kind}"
say(f"{fast} is compared with: {reference}")


def error(product: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest error of some rows compared with double precision, as a share of the largest element; NaN stays
    NaN."""
    rows = torch.linspace(0, len(a) - 1, min(ROWS, len(a))).long()
    exact = a[rows].double() @ b.double()
    return ((product.cpu()[rows].double() - exact).abs().max() / exact.abs().max()).item()


rows: list[dict] = []
allocations: list[dict] = []


def record(
    n: int, processor: str, kind: str, seconds: list[float], wrong_percent: float | None, table: list[dict] = rows
) -> float:
    """Add a row to a table, and return the median of `seconds`."""
    median = bench.percentile(seconds, 50)
    tflops = gpus.matmul_tflops(n, median)
    peak = gpu and processor == "GPU" and gpu.peak_tflops(args.dtype)
    single = reference_dtype == torch.float32  # then every product on the CPU is in float32
    limit = peak or (gpus.cpu_limit_tflops(os.cpu_count() or 1) if processor != "GPU" and single else None)
    is_refused = limit is not None and tflops > limit  # faster than the hardware can be: the measurement is wrong
    table.append({
        "size": n, "device": processor, "what": kind, "name": f"{n}: {processor}, {kind}", **bench.spread_ms(seconds),
        "gflop_per_s": None if is_refused else 1e3 * tflops, "refused": is_refused,
        "percent_of_peak": 100 * tflops / peak if peak and not is_refused else None,
        "error": wrong_percent, "error_of_allowed": None if wrong_percent is None else wrong_percent / TOLERANCE[args.dtype],
    })  # fmt: skip
    return median


# --- the experiment: correct first, then fast --------------------------------------------------------------------------
def experiment(n: int) -> dict:
    """Return all rows of one size, and the speed-up of the fast device."""
    source = torch.Generator().manual_seed(SEED)
    a, b = (torch.randn(n, n, generator=source).to(dtype) for _ in range(2))  # random: a GPU is faster with zeros
    baseline = torch.cuda.memory_allocated(device) if on_gpu else 0
    x, y = a.to(device), b.to(device)
    product = torch.empty(n, n, dtype=dtype, device=device)
    tensors = [x, y, product]
    tensor_bytes = sum(tensor.untyped_storage().nbytes() for tensor in tensors)
    allocator_bytes = torch.cuda.memory_allocated(device) - baseline if on_gpu else None
    allocations.append(
        {"size": n, "bytes": tensor_bytes, "expected_bytes": 3 * n * n * dtype.itemsize, "allocator_bytes": allocator_bytes}
    )

    def copy_there_and_back() -> torch.Tensor:
        """Copy both matrices to the device, and return the product, copied back.

        The last copy waits for the device, so an ordinary clock is enough.
        """
        return (a.to(device, copy=True) @ b.to(device, copy=True)).to("cpu", copy=True)

    def copies_only() -> torch.Tensor:
        """Make only the copies, without computing the product. Return the copy of the product."""
        a.to(device, copy=True), b.to(device, copy=True)
        return product.to("cpu", copy=True)

    cold = bench.time_each(lambda: torch.mm(x, y, out=product), device, 1)  # loads libraries, picks a kernel, fills caches
    record(n, fast, "first call", cold, error(product, a, b))
    flush = bench.cache_flush(device)
    warm = bench.measure(lambda: torch.mm(x, y, out=product), device, at_least=args.repeats, flush=flush)
    fast_s = record(n, fast, "warm", warm, error(product, a, b))
    with_copies = bench.measure(copy_there_and_back, CPU, budget_s=0.2)
    copies_s = record(n, fast, WITH_COPIES, with_copies, error(copy_there_and_back(), a, b))
    copies = bench.measure(
        copies_only, CPU, budget_s=0.1
    )  # measured separately: the difference of two noisy times can be negative
    exact_a, factor = a.to(reference_dtype), b.to(reference_dtype)
    cpu_time = bench.measure(lambda: exact_a @ factor, CPU, budget_s=0.2, threads=cores if on_gpu else 1)
    slow_s = record(n, reference, "warm", cpu_time, error(exact_a @ factor, a, b))
    return {"size": n, "first_call_ms": 1e3 * cold[0], "warm_ms": 1e3 * fast_s, "with_copies_ms": 1e3 * copies_s,
            "reference_ms": 1e3 * slow_s, "speedup": slow_s / fast_s, "speedup_with_copies": slow_s / copies_s,
            "copies_ms": 1e3 * bench.percentile(copies, 50), "least_s": min(warm if on_gpu else cpu_time),
            "cold_over_warm": cold[0] / fast_s}  # fmt: skip


speedups = [experiment(n) for n in (args.small, args.size)]
for worth in speedups:
    say(f"{worth['size']:>6}² {args.dtype}: {fast} was {worth['speedup']:.1f} times as fast as {reference}, "
        f"and {worth['speedup_with_copies']:.1f} times with copies")  # fmt: skip

if not on_gpu and speedups[1]["speedup"] < 1:
    say(f"Here {cores} threads were slower than one: other programs keep the cores busy, so the threads wait for each other.")

# --- your part: the same products, in the queue of a device that records its own working times ---------------------------
outcome = learner_part.run(None, "queued:time_with_yours", limit_s=240, sizes=[args.small, args.size], dtype=args.dtype)
timings = [*rows]
of_yours = outcome.results[0] if outcome.state == "ran" else []
for worth, yours in zip(speedups, of_yours, strict=False):  # none of yours if my_timer.py is open
    worth["yours_ms"] = 1e3 * record(yours["size"], fast, "warm, yours", [yours["seconds"]], None, timings)
if outcome.state == "open":
    say("my_timer.py is open: once it is written, it times the same products, in rows 'warm, yours'")
elif outcome.state == "failed":
    say(f"your timer measured nothing: {outcome.text}")
faults = [yours["verdict"] for yours in of_yours if yours["verdict"] != "right"]

# --- the record ----------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "tf32_allowed": torch.backends.cuda.matmul.allow_tf32, "reference": reference, "fast": fast,
    "reference_dtype": kind,
    "cpu_threads": cores, "rows": rows, "timings": timings, "speedups": speedups, "allocations": allocations,
    "speedup_small": speedups[0]["speedup"], "speedup_large": speedups[1]["speedup"],
    "program_speedup": 1 / (0.2 + 0.8 / speedups[1]["speedup"]),
    "time_per_operation_ratio": speedups[1]["least_s"] / speedups[0]["least_s"] / (args.size / args.small) ** 3,
    "your_timer": outcome.text if outcome.state == "failed" else (faults or ["right"])[0] if of_yours else None,
    "sizes_measured": len(speedups), "refused": sum(row["refused"] for row in rows),
    "fewest_warm_samples": min(row["samples"] for row in rows if row["device"] == fast and row["what"] == "warm"),
    "bytes_too_many": sum(abs(row["bytes"] - row["expected_bytes"]) for row in allocations),
    "simulated": None if on_gpu else "one CPU thread stands in for the CPU, and all of them for the GPU",
}  # fmt: skip
titles = {"size": "size", "device": "device", "what": "what", "median_ms": "median ms", "gflop_per_s": "GFLOP/s"}
bench.say_table(timings, titles)
for row in timings:
    if row["refused"]:
        say(f"refused: {row['name']} would be faster than the hardware can be; the clock stopped before the work was done")
path = bench.write_metrics("hello_gpu/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
