"""Count the CUDA calls of one request from outside, compare them with the engine's own ledger, and explain traces that deviate.

You will learn    how many kernels a token takes; what allocates memory while tokens are generated; what a tracer costs
You will produce  calls, kernels and blocks of one request, counted exactly; six more traces, and why they deviate
Run it            python calls.py --prompt 16 --tokens 8; as root with bpftrace, otherwise with LD_PRELOAD
Your part         `explain` in my_deviation.py
Reading           modules/B-ebpf-tracing/lesson-2-calls.md
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import deviations
import own_part
import stand_in
import torch_engine
import tracers
from bench import say

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="count the CUDA calls of one request")
parser.add_argument("--prompt", type=int, default=16, help="length of the prompt")
parser.add_argument("--tokens", type=int, default=8, help="number of tokens to generate")
parser.add_argument("--puzzle", type=int, default=1, help="determines the engine's number of layers and its sizes")
parser.add_argument("--tracer", choices=("auto", *tracers.NAMES), default="auto", help="auto: the first tracer that works here")
parser.add_argument(
    "--engine", choices=("auto", "stand-in", "torch"), default="auto", help="auto: PyTorch on a GPU, otherwise the stand-in"
)
args = parser.parse_args()
if not 1 <= args.prompt <= 2048 or not 1 <= args.tokens <= 512 or args.puzzle < 1:
    parser.error("--prompt must be from 1 to 2048, --tokens from 1 to 512, and --puzzle at least 1")
REPEATS, MIN_REPEATS, MAX_CALLS = 20, 3, 20_000  # requests with and without a tracer: fewer if each makes many calls
layers = 4 + (args.puzzle - 1) % 6
device = bench.here()
real = args.engine == "torch" or (args.engine == "auto" and device.type == "cuda")
if real and device.type != "cuda":
    parser.error("--engine torch needs a GPU")
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
learner_part = own_part.Process("my_deviation.py")


def make_engine(tracer: tracers.Tracer | None) -> stand_in.Engine:
    """Return an engine that has not started yet: PyTorch's on a GPU, otherwise the stand-in."""
    if real:
        return torch_engine.TorchEngine(layers=layers, tracer=tracer)
    return stand_in.Engine(layers=layers, seed=args.puzzle, tracer=tracer)


def time_requests(engine: stand_in.Engine, calls: int) -> float:
    """Return the median time of a warm request, in seconds. The more `calls` it makes, the less often it is repeated."""
    seconds = []
    for _ in range(1 + max(MIN_REPEATS, min(REPEATS, MAX_CALLS // calls))):
        start = time.perf_counter()
        engine.request(args.prompt, args.tokens)
        seconds.append(time.perf_counter() - start)
    return bench.percentile(seconds[1:], 50)


def find_largest_difference(first: Mapping[str, int], second: Mapping[str, int]) -> int:
    """Return the largest difference between two numbers of the same name. A missing number counts as 0."""
    return max((abs(first.get(name, 0) - second.get(name, 0)) for name in {*first, *second}), default=0)


# --- one request, and what the tracer costs ----------------------------------------------------------------------------------
try:
    tracer = tracers.find(args.tracer, torch_engine.find_library(os.getpid()) if real else None)
    say("".join(f"not used: {reason}\n" for reason in tracer.refusals) + f"tracer: {tracer.name}\n")
    with make_engine(tracer) as engine:
        with tracers.trace(tracer, engine) as counters:
            engine.load()
            token_count, failure = engine.request(args.prompt, args.tokens)
        ledger = engine.ledger()
        if not counters.total:
            sys.exit(f"{tracer.name} counted no call: is {engine.library} the library that the engine uses?")
        with tracers.trace(tracer, engine):
            traced_s = time_requests(engine, counters.total)
        graphs = torch_engine.count_graphs(tracer, engine, args.prompt, args.tokens)
    with make_engine(None) as engine:
        plain_s = time_requests(engine, counters.total)
    requests, cases = ([], []) if real else deviations.trace_cases(tracer, layers, args.puzzle)
except (stand_in.UnsupportedMachine, stand_in.EngineEnded, tracers.NoTracer, tracers.TracerFailed) as error:
    sys.exit(str(error))
if failure:
    sys.exit(f"the engine generated {token_count} of {args.tokens} tokens: {failure}")

# --- your part: why does each trace deviate? ----------------------------------------------------------------------------------
outcome = None
if cases:
    traces = [case["trace"] for case in cases]
    outcome = learner_part.run(None, "deviations:explain_all", layers=layers, requests=requests, traces=traces)
answers = outcome.results[0] if outcome and outcome.state == "ran" else [None] * len(cases)
deviating = [
    {"trace": index + 1, "calls": sum(case["trace"].values()), "yours": None if answer is None else " ".join(map(str, answer)),
     "right": None if answer is None else answer == list(case["cause"])}
    for index, (case, answer) in enumerate(zip(cases, answers, strict=True))
]  # fmt: skip


def find_share(count: Callable[[Mapping[str, int]], int], trace: Mapping[str, int]) -> float:
    """Return the calls of a trace in percent of those of the complete trace."""
    return 100 * count(trace) / max(1, count(complete))


complete = next((case["trace"] for case in cases if case["cause"][0] == "complete"), {})
shares = [
    {"trace": ": ".join(filter(None, (f"trace {row['trace']}", row["yours"])))}
    | {"launches": find_share(deviations.count_launches, case["trace"])}
    | {site: find_share(lambda trace, site=site: trace.get(site, 0), case["trace"]) for site in deviations.SITES}
    for row, case in zip(deviating, cases, strict=True)
]

# --- the tables ---------------------------------------------------------------------------------------------------------------
calls = [{"api": api, "name": api.replace("cudaDevice", "").replace("cuda", ""), "calls": row.calls, "bytes": row.bytes,
          "failed": row.failed, "p50_us": row.p50_us, "p99_us": row.p99_us, "ledger": ledger["calls"].get(api)}
         for api, row in counters.calls.items()]  # fmt: skip
kernels = [{"kernel": name, "launches": count}
           for name, count in sorted(counters.kernels.items(), key=lambda item: -item[1])[:20]]  # fmt: skip
sites = [{"site": name, "calls": site.calls, "bytes": site.bytes} for name, site in counters.sites.items()]
if real:
    say(f"A PyTorch transformer with {layers} layers: a prompt of {args.prompt} tokens, {args.tokens} generated\n")
else:
    say(f"An engine of {layers} layers, {ledger['width']} wide, {ledger['vocabulary']:,} words: "
        f"a prompt of {args.prompt} tokens, {token_count} generated\n")  # fmt: skip
load_calls = 2 * layers if not real else 0  # calls that load the weights: one block and one copy per layer
bench.say_table(calls, {"api": "call", "calls": "calls", "bytes": "bytes", "p50_us": "p50, µs",
                        "p99_us": "p99, µs", "ledger": "ledger"})  # fmt: skip
bench.say_table(kernels, {"kernel": "kernel", "launches": "launches"})
bench.say_table(sites, {"site": "who asked for memory", "calls": "blocks", "bytes": "bytes"})
if deviating:
    log = ", ".join(f"{prompt} + {tokens}" for prompt, tokens in requests)
    say(f"\n{len(cases)} further traces of one log: requests of {log} tokens (prompt + generated)")
    bench.say_table(deviating, {"trace": "trace", "calls": "launches and blocks", "yours": "yours", "right": "right"})
if outcome and outcome.state == "open":
    say("my_deviation.py is unchanged. Once you have written explain, the table has a cause for each trace: yours")
elif outcome and outcome.state == "ran":
    say(f"yours: the cause of {sum(row['right'] is True for row in deviating)} of {len(cases)} traces is right")
elif outcome and outcome.state == "failed":
    say(f"my_deviation.py failed: {outcome.text}")
overhead = 100 * (traced_s / plain_s - 1)
a_call_us = 1e6 * (traced_s - plain_s) / (counters.total - load_calls)
say(f"\nA request takes {1e3 * plain_s:.2f} ms, and {1e3 * traced_s:.2f} ms with the tracer: {overhead:+.0f} %, "
    f"or {a_call_us:.1f} µs per call.")  # fmt: skip
if not real:
    say("The calls of the stand-in do almost nothing, so this share is the most that a tracer can cost.")

# --- the record ---------------------------------------------------------------------------------------------------------------
by_site = {name: site.calls for name, site in counters.sites.items()}
bytes_by_site = {name: site.bytes for name, site in counters.sites.items()}
differences = [
    find_largest_difference({api: row.calls for api, row in counters.calls.items() if api in ledger["calls"]}, ledger["calls"])
]
bytes_off = None
if not real:
    true_sites = {name: site["calls"] - site["failed"] for name, site in ledger["sites"].items()}
    differences += [find_largest_difference(counters.kernels, ledger["kernels"]), find_largest_difference(by_site, true_sites)]
    traced_bytes = {api: row.bytes for api, row in counters.calls.items() if row.bytes is not None}
    true_bytes = {name: site["bytes"] for name, site in ledger["sites"].items()}
    bytes_off = max(find_largest_difference(traced_bytes, ledger["bytes"]), find_largest_difference(bytes_by_site, true_bytes))
total = counters.launches
metrics = {
    **vars(args), "layers": layers, "engine": "torch" if real else "stand-in", "tracer": tracer.name, "stacks": tracer.stacks,
    "not_used": list(tracer.refusals), "calls": calls, "kernels": kernels, "sites": sites, "ledger": ledger,
    "calls_total": counters.total, "trace_off": max(differences), "bytes_off": bytes_off, "launches": total,
    "mallocs": counters.count("cudaMalloc"),
    "requests": requests, "deviating": deviating, "shares_of_log": shares,
    "deviations": [case["trace"] for case in cases],
    "explained": None if outcome is None or outcome.state == "open" else sum(row["right"] is True for row in deviating),
    "part_failure": outcome.text if outcome and outcome.state == "failed" else "", "slowdown": traced_s / plain_s,
    "plain_ms": 1e3 * plain_s, "traced_ms": 1e3 * traced_s, "overhead_percent": overhead,
    "us_a_call": a_call_us,
    "torch_num_device_alloc": ledger["calls"]["cudaMalloc"] if real else None,
    "graph_launches": graphs, "graph_launches_off": None if graphs is None else abs(graphs - args.tokens),
}  # fmt: skip
(out / "calls.json").write_text(
    json.dumps({"calls": calls, "kernels": kernels, "sites": sites}, indent=2) + "\n", encoding="utf-8"
)
if (part_file := Path(deviations.__file__).with_name("my_deviation.py")).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / part_file.name)
path = bench.write_metrics("calls/1", device, world_size=1, seed=args.puzzle, metrics=metrics)
bench.say_end(path, device)
