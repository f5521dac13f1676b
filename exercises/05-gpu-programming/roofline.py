"""Roofline: what limits each of eight kernels on this device, and a stencil that gets faster by moving fewer bytes.

You will learn    to measure the two roofs of a device; to place a kernel under them by counting; what to change, and what not
You will produce  a roofline with eight kernels under it, and a step of the heat equation that moves about half the bytes
Run it            python roofline.py --gemm-small 16 --gemm-large 512     (a CPU: one core of it)
                  python roofline.py                                      (a GPU)
Your part         find_limit in my_limits.py; step in my_stencil.py
Reading           modules/05-gpu-programming/lesson-9-limits.md, "Two roofs"
"""

from __future__ import annotations

import argparse
import math
import os
import random
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpus
import my_limits
import my_stencil
import planted_traces
import roof_kernels
import torch
from bench import say
from roof_kernels import Kernel, step_slowly
from traffic import ByteCounter

SEED, ROUNDS, MAX_ROUNDS, MAX_PERCENT, PLATE, C, TRACES = 0, 2, 20, 105.0, 514, 0.1, 12
MAX_ARRAY_BYTES = {"cpu": 64 << 20, "cuda": 256 << 20}  # bytes

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="eight kernels under the roofs of this device")
parser.add_argument(
    "--size", type=int, default=0, help="side of the large arrays; with 0, an array has four times the size of the last cache"
)
parser.add_argument("--gemm-small", type=int, default=256, help="side of the small matrices")
parser.add_argument("--gemm-large", type=int, default=4096, help="side of the large matrices")
parser.add_argument("--threads", type=int, default=1, help="cores of the processor to use if there is no GPU")
parser.add_argument("--trace-seed", type=int, default=1, help="which new traces your find_limit gets")
args = parser.parse_args()
if args.size and args.size < 256:
    parser.error("--size must be 0 or at least 256: with shorter arrays you would only measure the cost of calls")
if not 4 <= args.gemm_small < args.gemm_large:
    parser.error("--gemm-small must be at least 4, and below --gemm-large")
if not 1 <= args.threads <= (os.cpu_count() or 1):
    parser.error(f"--threads must be from 1 to {os.cpu_count()}, the cores of this node")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
on_gpu = device.type == "cuda"
gpu = gpus.find(torch.cuda.get_device_name(device)) if on_gpu else None
flush = bench.cache_flush(device)
if not on_gpu:
    torch.set_num_threads(args.threads)
    say(f"No GPU here: this is the roofline of {args.threads} core{'s' * (args.threads > 1)} of this computer. (local mode)")
cache = roof_kernels.find_last_cache(device)
side = args.size or roof_kernels.choose_side(cache, MAX_ARRAY_BYTES[device.type])
array_mib, cache_mib = side * side * 4 / 2**20, cache / 2**20 if cache else None
beyond_cache = cache_mib is not None and array_mib >= 3.99 * cache_mib
say(f"arrays of {side:,} x {side:,} numbers, {array_mib:,.0f} MiB; "
    + ("the last cache is unknown" if cache_mib is None else f"the last cache has {cache_mib:,.0f} MiB"))  # fmt: skip
if not beyond_cache:
    say("they may stay in the cache: the roof may be the cache's (a virtual machine sees the cache of its whole host)")
arrays = roof_kernels.make_arrays(side, device, SEED)


def least_seconds(call: Callable[[], object]) -> float:
    """Return the shortest time of several warm calls. Other programs on the computer can only make a call slower."""
    if on_gpu:
        return min(bench.measure(call, device, budget_s=0.2, flush=flush))
    cold, warm = bench.time_each(call, device, 2)
    is_slow = min(cold, warm) > 0.02
    return min([warm, *(bench.time_each(call, device, 1) if is_slow else bench.measure(call, device, budget_s=0.02))])


def measure_loops() -> list[dict]:
    """Return the GB/s of each loop for the roof, counting the bytes that the loop itself requests."""
    return [{"loop": name, "gb_per_s": width * arrays.a.numel() / least_seconds(call) / 1e9}
            for name, call, width in roof_kernels.list_loops(arrays)]  # fmt: skip


def choose_roof(loops: list[dict]) -> dict:
    """Return the loop that moved the most bytes a second. The device can move at least that many."""
    return max(loops, key=lambda loop: loop["gb_per_s"])


def measure_roofs() -> None:
    """Measure each loop over memory and each product again, and add the results to the earlier ones."""
    loops.extend(measure_loops())
    gflops.extend(product.flops / least_seconds(product.call) / 1e9 for product in products)


def measure_kernels() -> None:
    """Measure each kernel and your step again, and keep the shortest times in `best`."""
    calls = {kernel.name: kernel.call for kernel in kernels}
    if step_broken == "no error":
        calls["stencil, yours"] = lambda: my_stencil.step(arrays.a, arrays.c, C)
    for name, call in calls.items():
        best[name] = min(best.get(name, math.inf), least_seconds(call))


def find_peak() -> float:
    """Return the GFLOP/s of the fastest matrix product. The last kernel is one of the products."""
    return max(*gflops, kernels[-1].flops / best[kernels[-1].name] / 1e9)


def find_kernels_above() -> list[str]:
    """Return the kernels that were faster than the roofs allow."""
    by_name = {kernel.name: kernel for kernel in kernels} | {"stencil, yours": stencil_kernel}
    roofs = {name: min(peak, by_name[name].flop_per_byte * memory["gb_per_s"]) for name in best}
    return [name for name, seconds in best.items() if by_name[name].flops / seconds / 1e9 > MAX_PERCENT / 100 * roofs[name]]


def describe(kernel: Kernel, seconds: float, name: str = "") -> dict:
    """Return a kernel's row under the roofs. A figure above them is refused."""
    intensity, gflop_per_s = kernel.flop_per_byte, kernel.flops / seconds / 1e9
    roof = min(peak, intensity * memory["gb_per_s"])
    percent = 100 * gflop_per_s / roof
    is_refused = percent > MAX_PERCENT
    return {
        "kernel": name or kernel.name, "n": kernel.n, "formula": kernel.formula, "flop_per_byte": intensity,
        "bound": "memory" if intensity < ridge else "compute", "gflop_per_s": None if is_refused else gflop_per_s,
        "gb_per_s": None if is_refused else kernel.least_bytes / seconds / 1e9,
        "percent_of_roof": None if is_refused else percent, "roof_gflop_per_s": roof, "refused": is_refused,
    }  # fmt: skip


def count_bytes(call: Callable[[], object]) -> int:
    """Return the bytes that the operations of a call read and write."""
    with ByteCounter() as counter:
        call()
    return counter.total


def try_step() -> tuple[str, float | None, float | None]:
    """Return your step's error message ("no error" if it had none), its error against double precision, and its bytes per
    point."""
    plate = torch.rand(PLATE, PLATE, generator=torch.Generator().manual_seed(SEED)).to(device)
    out, wide = plate.clone(), plate.double()
    try:
        byte_count = count_bytes(lambda: my_stencil.step(plate, out, C))
        if byte_count < 8 * (PLATE - 2) ** 2:
            raise ValueError("your step moves bytes that are not counted: use operations of torch, not NumPy or lists")
        my_stencil.step(arrays.a, arrays.c, C)
    except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
        traceback.print_exc(file=sys.stdout)
        return f"{type(error).__name__}: {error}"[:500], None, None
    wide_copy = wide.clone()
    step_slowly(wide, wide_copy, C)
    return "no error", ((out - wide_copy).abs().max() / wide_copy.abs().max()).item(), byte_count / (PLATE - 2) ** 2


def read_traces() -> tuple[str | None, list[dict]]:
    """Return your find_limit's error ("no error" without one, None if it is not written), and its answers for new traces."""
    rows = []
    try:
        for number, limit in enumerate(random.Random(args.trace_seed).choices(planted_traces.LIMITS, k=TRACES), 1):
            trace = planted_traces.make_trace(limit, 1000 * args.trace_seed + number)
            row = {"trace": number, "device": trace.device.name, "launches": len(trace.launches), "us": trace.length_us}
            rows.append(row | {"limit": limit, "yours": str(my_limits.find_limit(list(trace.launches), trace.device))})
    except NotImplementedError:
        return None, []
    except Exception as error:  # noqa: BLE001
        traceback.print_exc(file=sys.stdout)
        return f"{type(error).__name__}: {error}"[:500], []
    return "no error", rows


def name_measured_limit(name: str, flops: float, moved_bytes: float) -> str | None:
    """Return the limit that your find_limit names for a kernel that this run measured, given as a trace of a single launch.

    Stalls are not measured. So it is called for a kernel that never stalls and for one that always does, and both answers count
    if they differ.
    """
    if traces_broken != "no error":
        return None
    device_here = planted_traces.Device("this device", peak, memory["gb_per_s"])
    us = best[name] * 1e6
    launches = [planted_traces.Launch(name, 0.0, us, flops, moved_bytes, moved_bytes, stalled) for stalled in (0.0, 1.0)]
    try:
        return " or ".join(dict.fromkeys(str(my_limits.find_limit([launch], device_here)) for launch in launches))
    except Exception as error:  # noqa: BLE001 (right for many launches, but not for one)
        say(f"your find_limit, for {name} alone: {type(error).__name__}: {error}")
        return None


# --- roofs, kernels and your step in rounds, so that the computer's load is the same for all; the best of each counts --------
kernels = roof_kernels.make_kernels(arrays, args.gemm_small, args.gemm_large)
products = [roof_kernels.make_gemm(n, device) for n in (args.gemm_large, 2 * args.gemm_large)]
stencil_kernel = next(kernel for kernel in kernels if kernel.name == "stencil")
step_broken, step_error, step_bytes = try_step()
loops: list[dict] = []
gflops: list[float] = []
best: dict[str, float] = {}
for _ in range(ROUNDS):
    measure_roofs()
    measure_kernels()
measure_roofs()
memory, peak = choose_roof(loops), find_peak()
for _ in range(MAX_ROUNDS):  # a roof below its kernels was measured while the computer was busy
    if not find_kernels_above():
        break
    measure_roofs()
    memory, peak = choose_roof(loops), find_peak()
ridge = peak / memory["gb_per_s"]
sheet = {"gb_per_s": gpu.gb_per_s if gpu else None, "gflop_per_s": gpu.fp32 * 1e3 if gpu else None}
most_gflops = sheet["gflop_per_s"] if on_gpu else gpus.cpu_limit_tflops(args.threads) * 1e3
roof_refused = (most_gflops is not None and peak > most_gflops) + bool(gpu and memory["gb_per_s"] > gpu.gb_per_s)
say(f"\nmemory: {memory['gb_per_s']:.1f} GB/s, by {memory['loop']}; arithmetic: {peak:,.0f} GFLOP/s, by a matrix product"
    f"\nridge: {ridge:.1f} operations per byte\n")  # fmt: skip

traces_broken, trace_rows = read_traces()
rows = []
for kernel in kernels:
    row = describe(kernel, best[kernel.name])
    moved = count_bytes(kernel.call)
    rows.append(
        {**row, "yours": name_measured_limit(kernel.name, kernel.flops, moved), "moved_times": moved / kernel.least_bytes}
    )
stencil = next(row for row in rows if row["kernel"] == "stencil")
delivered_bytes = stencil["moved_times"] * 8
improved = None
if step_broken == "no error":
    improved = describe(stencil_kernel, best["stencil, yours"], "stencil, yours") | {
        "yours": name_measured_limit("stencil, yours", stencil_kernel.flops, step_bytes / 8 * stencil_kernel.least_bytes),
        "moved_times": step_bytes / 8,
    }
shown_kernels = rows + ([improved] if improved else [])
titles = {"kernel": "kernel", "formula": "operations / bytes", "flop_per_byte": "a byte", "gflop_per_s": "GFLOP/s",
          "bound": "bound by", "percent_of_roof": "% of roof", "moved_times": "bytes, x least"}  # fmt: skip
bench.say_table(shown_kernels, titles)

# --- the record ------------------------------------------------------------------------------------------------------------
drawn_kernels = [row if row["kernel"] != "stencil, yours" or step_bytes != delivered_bytes else row | {
    "gflop_per_s": None, "why_not": "not written yet"} for row in shown_kernels]  # fmt: skip
corner = {"kernel": "the ridge", "flop_per_byte": ridge, "gflop_per_s": peak, "roof_gflop_per_s": peak}
metrics = {
    **vars(args), "side": side, "array_mib": array_mib, "last_cache_mib": cache_mib, "beyond_cache": beyond_cache,
    "gpu": gpu.gpu if gpu else None, "sheet": sheet, "loops": loops,
    "roof": {"gb_per_s": memory["gb_per_s"], "gb_by": memory["loop"], "gflop_per_s": peak, "ridge_flop_per_byte": ridge},
    "kernels": shown_kernels, "drawn": sorted([*drawn_kernels, corner], key=lambda row: row["flop_per_byte"]),
    "memory_bound": sum(row["bound"] == "memory" for row in rows),
    "compute_bound": sum(row["bound"] == "compute" for row in rows),
    "refused": sum(row["refused"] for row in shown_kernels) + int(roof_refused),
    "traces_broken": traces_broken, "traces": trace_rows,
    "traces_right": sum(row["yours"] == row["limit"] for row in trace_rows) if traces_broken == "no error" else None,
    "step_broken": step_broken, "stencil_error": step_error, "stencil_roof_gflop_per_s": stencil["roof_gflop_per_s"],
    "stencil_percent_of_roof": stencil["percent_of_roof"],
    "delivered_bytes": delivered_bytes, "yours_bytes": step_bytes,
    "saved_percent": None if step_bytes is None else 100 * (1 - step_bytes / delivered_bytes),
    "stencil_speedup": best["stencil"] / best["stencil, yours"] if improved else None,
    "forces_moved_times": next(row["moved_times"] for row in rows if row["kernel"] == "all-pairs forces"),
    "large_percent_of_roof": rows[-1]["percent_of_roof"], "large_bound": rows[-1]["bound"],
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
for part in (my_stencil, my_limits):
    if (part_file := Path(part.__file__)).parent.resolve() != out.resolve():
        shutil.copyfile(part_file, out / part_file.name)  # the measured file, kept with the figures
path = bench.write_metrics("roofline/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
