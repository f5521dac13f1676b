"""Your own tracer: what an engine allocates, what it never frees and which function asked for it, seen from outside.

You will learn    what a probe at the entry of a function can know, and what only a probe at its return; how the function that
                  requested the memory reveals a leak; why a failed call must not add anything
You will produce  allocations, bytes, failures and live bytes by call site of three workloads; their sizes as a histogram
Run it            python own_tracer.py --seed 2
Your part         my_trace.bt, or my_preload.c if you cannot use bpftrace: one of the two is enough
Reading           modules/B-ebpf-tracing/lesson-3-tracer.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import allocations
import bench
import bpf
import collectives
import stand_in
import symbols
import torch_engine
from allocations import Totals
from bench import say

HERE = Path(__file__).resolve().parent
GPU_BYTES = 16 * 10**9  # of the GPU that a question imagines
FILES = {"bpftrace": HERE / "my_trace.bt", "preload": HERE / "my_preload.c"}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="your memory tracer, compared with the ledger of the engine that it traces")
parser.add_argument("--seed", type=int, default=1, help="determines the sizes of the three workloads")
parser.add_argument("--layers", type=int, default=6, help="number of layers of the engine, 4 to 9")
parser.add_argument("--tokens", type=int, default=8, help="number of tokens that most requests generate")
parser.add_argument("--cap-mib", type=int, default=64, help="MiB of memory of the GPU in the third workload")
parser.add_argument("--tracer", default="auto", help="auto, bpftrace (my_trace.bt) or preload (my_preload.c)")
parser.add_argument(
    "--collectives", action=argparse.BooleanOptionalAction, default=False, help="also trace the all-reduces of DDP training"
)
args = parser.parse_args()
if args.seed < 1 or not 4 <= args.layers <= 9 or not 1 <= args.tokens <= 64 or not 48 <= args.cap_mib <= 128:
    parser.error("--seed must be at least 1, --layers from 4 to 9, --tokens from 1 to 64, and --cap-mib from 48 to 128")
if args.tracer not in ("auto", *FILES):
    parser.error(f"--tracer {args.tracer} is not one of auto, {', '.join(FILES)}")
device = bench.here()
try:  # on a GPU the engine allocates its memory, from the runtime that PyTorch brings
    runtime = torch_engine.find_library(os.getpid()) if device.type == "cuda" else None
    library = runtime or stand_in.build() / stand_in.LIBRARY
except (stand_in.UnsupportedMachine, bpf.TracerFailed) as error:
    parser.error(str(error))


# --- which of the two files ------------------------------------------------------------------------------------------------
def choose_tracer() -> str:
    """Return the requested tracer.

    With auto, return the first one that works here and whose file is written: bpftrace, then preload.
    """
    reason = bpf.find_reason(library) if args.tracer != "preload" else None
    if reason and args.tracer == "bpftrace":
        parser.error(f"{reason}. --tracer preload uses my_preload.c, which needs neither root nor bpftrace")
    if reason:
        say(f"my_trace.bt is not used: {reason}. my_preload.c needs neither.\n")
    if args.tracer != "auto":
        return args.tracer
    if reason or (allocations.is_open(FILES["bpftrace"]) and not allocations.is_open(FILES["preload"])):
        return "preload"
    return "bpftrace"


# --- the workloads ---------------------------------------------------------------------------------------------------------
Counted = dict[Any, Any]
FAILURES = (bpf.TracerFailed, stand_in.UnsupportedMachine, stand_in.EngineEnded, ValueError)


def trace(workload: allocations.Workload) -> tuple[Counted, Totals | None, Mapping[str, Any]]:
    """Return the counts of your file in a workload, the totals of its memory, and the ledger.

    The totals are None while the file is not written.
    """
    if tracer == "preload":
        with tempfile.TemporaryDirectory(prefix=".preload-", dir=Path.cwd()) as folder:
            library = stand_in.build_library(file, Path(folder))
            counters, ledger = allocations.trace_by_preload(library, workload, Path.cwd(), runtime)
        return counters, allocations.read_counters(counters) if is_written else None, ledger
    counters, ledger = allocations.trace_by_bpftrace(file.read_text(encoding="utf-8"), workload, Path.cwd(), runtime)
    return counters, allocations.read_maps(counters) if is_written else None, ledger


def list_others() -> list[str]:
    """Return the functions that your file traces besides the memory functions."""
    if tracer == "bpftrace":
        return allocations.list_other_probes(file.read_text(encoding="utf-8"), sorted(symbols.list_functions(library)))
    with tempfile.TemporaryDirectory(prefix=".preload-", dir=Path.cwd()) as folder:
        names = symbols.list_functions(stand_in.build_library(file, Path(folder)))
    return sorted(name for name in names if name.startswith("cuda") and not name.startswith(allocations.MEMORY_CALLS))


tracer = choose_tracer()
file = FILES[tracer]
is_written = not allocations.is_open(file)
rows: list[dict[str, Any]] = []
sites: list[dict[str, Any]] = []
calls: list[dict[str, Any]] = []
memory_totals: dict[str, Any] = {}
broken, other_probes, blocks = "no", None, Counter[int]()
weights: list[int] = []
for workload in allocations.list_workloads(args.seed, args.layers, args.tokens, args.cap_mib):
    totals = None
    try:
        other_probes = list_others() if other_probes is None else other_probes
        workload_counters, totals, ledger = trace(workload)
        memory_totals[workload.name] = {
            "counted": {str(key): value for key, value in workload_counters.items()},
            "ledger": ledger,
        }
        calls += [
            {"workload": workload.name, "api": api, "calls": count} for api, count in allocations.read_calls(workload_counters)
        ]
    except FAILURES as error:
        broken, ledger = f"{type(error).__name__}: {error}"[:500], allocations.run_alone(workload)
    right = allocations.read_ledger(ledger)
    weights.append(right.alive[allocations.WEIGHTS])
    rows.append({"workload": workload.name, **allocations.compare(totals, right)})
    names = sorted({*right.alive, *totals.alive}) if totals else []  # your tracer has to name the leak
    sites += [{"workload": workload.name, "site": site, "place": f"{site} ({len(rows)})",
               "alive_bytes": totals.alive.get(site, 0), "alive_true": right.alive.get(site, 0)}
              for site in names]  # fmt: skip
    blocks.update(totals.sizes if totals else {})
counted_all = is_written and broken == "no"

# --- the collectives of a training, if requested ------------------------------------------------------------------------------
collective_rows: list[dict[str, Any]] = []
if args.collectives:
    try:
        if (reason := bpf.find_reason(library)) is not None:
            raise bpf.TracerFailed(reason)
        collective_rows = collectives.trace((HERE / "my_collectives.bt").read_text(encoding="utf-8"))
    except bpf.TracerFailed as error:
        say(f"The collectives are not measured: {error}\n")

# --- the record ------------------------------------------------------------------------------------------------------------
say(f"tracer: {tracer}, with {file.name}\n")
if broken != "no":
    say(f"Your tracer did not run: {broken}\n")
elif not is_written:
    say(f"Your part is not written yet: {file.name}. As delivered it counts calls:")
    say(bench.table(calls, {"workload": "workload", "api": "function", "calls": "calls"}) + "\n")
bench.say_table(rows, {"workload": "workload", "allocations": "allocations", "allocations_true": "ledger", "bytes": "bytes",
                       "bytes_true": "ledger", "failed": "failed", "failed_true": "ledger"})  # fmt: skip
if counted_all:
    titles = {"workload": "workload", "site": "asked by", "alive_bytes": "bytes alive", "alive_true": "ledger"}
    bench.say_table(sites, titles)
if collective_rows:
    titles = {"rank": "rank", "allreduces": "all-reduces", "in_a_step": "in a step", "p50_us": "p50, µs", "p99_us": "p99, µs"}
    bench.say_table(collective_rows, titles)
sizes = [{"size": allocations.name_size(power), "blocks": blocks[power]} for power in sorted(blocks)]
metrics = {
    **vars(args), "tracer": tracer, "file": file.name, "trace_broken": broken, "workloads": rows, "sites": sites,
    "runtime": "NVIDIA" if runtime else "stand-in", "calls": calls, "sizes": sizes,
    "other_probes": other_probes, "collective_rows": collective_rows,
    "other_probe_count": len(other_probes or ()) if counted_all else None,
    **{f"{name}_off": sum(row[f"{name}_off"] for row in rows) if counted_all else None for name in allocations.COMPARED},
    "leaked_percent_first": 100 * (1 - weights[0] / rows[0]["alive_true"]),
    "requests_until_full": (GPU_BYTES - weights[1]) / ((rows[1]["alive_true"] - weights[1]) / 3),
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / "trace.json").write_text(json.dumps(memory_totals, indent=1))
if out.resolve() != HERE:
    shutil.copyfile(file, out / file.name)
path = bench.write_metrics("own_tracer/1", device, world_size=1, seed=args.seed, metrics=metrics)
bench.say_end(path, device)
