"""Read a trace: your functions on traces with planted faults, and on a trace of this run.

You will learn    what a profiler records, and how to find what costs the time
You will produce  busy share, exposed communication, longest gap and time by range of each trace, and the fault of each
Run it            python read_trace.py
Your part         my_trace.py
Reading           modules/05-gpu-programming/lesson-13-traces.md

On a GPU the trace of this run has kernels. Without one it has only operations on the processor: then the outermost operations
count as work, each as its own call, so that the same functions read it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # keeps the profiler from reporting its own start and end
sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import my_trace
import torch
import traces
from bench import limit_time, say
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, supported_activities

PAUSE_S, PAUSE_AFTER, LIMIT_S = 1.0, "aten::special_erfinv", 60.0
RANGES = ("data", "forward", "backward", "optimizer")

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="read traces")
parser.add_argument("--seed", type=int, default=11, help="seed of the planted traces")
parser.add_argument("--steps", type=int, default=6, help="training steps of the run's own trace")
args = parser.parse_args()
if args.steps < 3:
    parser.error("--steps must be at least 3")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
torch.set_num_threads(1)  # threads that wait for each other would add gaps
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)


def train(steps: int) -> None:
    """Train a small model, with a range for each phase, and with a pause after the second step."""
    torch.manual_seed(args.seed)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with record_function("data"):
            x, y = torch.randn(32, 64).to(device), torch.randint(10, (32,)).to(device)
        with record_function("forward"):
            loss = nn.functional.cross_entropy(model(x), y)
        with record_function("backward"):
            loss.backward()
        with record_function("optimizer"):
            optimizer.step()
            optimizer.zero_grad()
        if step == 1:
            torch.special.erfinv(x)
            time.sleep(PAUSE_S)  # the fault of this run


def read_work_of_the_processor(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events with each outermost operation as a piece of work and as the call that launched it."""
    result, ends = [event for event in events if event.get("cat") == "user_annotation"], dict[Any, float]()
    operations = [event for event in events if event.get("cat") == "cpu_op"]
    for number, event in enumerate(sorted(operations, key=lambda event: (event["ts"], -event["dur"]))):
        if event["ts"] >= ends.get(event["tid"], 0.0):
            ends[event["tid"]] = event["ts"] + event["dur"]
            result += [event | {"cat": category, "args": {"correlation": number}} for category in ("kernel", "cuda_runtime")]
    return result


def read_work_of_the_gpu(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without work whose launch was not recorded. Calls of the CUDA driver count as those of the runtime."""
    result = [event | {"cat": "cuda_runtime"} if event.get("cat") == "cuda_driver" else event for event in events]
    launched = {event["args"].get("correlation") for event in result if event.get("cat") == "cuda_runtime"}
    work = ("kernel", "gpu_memcpy", "gpu_memset")
    return [event for event in result if event.get("cat") not in work or event["args"].get("correlation") in launched]


# --- the experiment: a trace of this run -----------------------------------------------------------------------------------
train(2)  # warm
activities = {ProfilerActivity.CPU, ProfilerActivity.CUDA} if device.type == "cuda" else {ProfilerActivity.CPU}
with profile(activities=supported_activities() & activities) as profiler:
    train(args.steps)
own_file = out / "own-trace.json.gz"
profiler.export_chrome_trace(str(own_file))
with gzip.open(own_file, "rt", encoding="utf-8") as file:
    own_events = json.load(file)["traceEvents"]
on_gpu = any(event.get("cat") == "kernel" for event in own_events)  # also false if the driver does not permit counting
own_work = read_work_of_the_gpu(own_events) if on_gpu else read_work_of_the_processor(own_events)
recorded_ranges = {event["name"] for event in own_events if event.get("cat") == "user_annotation"} & set(RANGES)
kinds = "kernels" if on_gpu else "operations on the processor"
say(f"own-trace.json.gz: {len(own_events):,} events, with {kinds}; open it in https://ui.perfetto.dev")

# --- the experiment: planted traces ----------------------------------------------------------------------------------------
planted_traces = {}
for fault in (traces.NO_FAULT, *traces.FAULTS):
    trace, answers = traces.plant(fault, args.seed)
    planted_traces[fault] = trace["traceEvents"], answers
    (out / f"planted-{fault.replace(' ', '-')}.json").write_text(json.dumps(trace), encoding="utf-8")
healthy, exposed = (planted_traces[fault][1] for fault in (traces.NO_FAULT, "exposed all-reduce"))
rows = [
    {"trace": fault, "reader": "the planter", "busy_percent": answers["busy_percent"], "exposed_us": answers["exposed_us"],
     "gap_us": answers["gap_us"], "gap_call": answers["gap_call"], "times": answers["span_us"] / healthy["span_us"],
     "named": None}
    for fault, (_, answers) in planted_traces.items()
]  # fmt: skip

# --- your part ---------------------------------------------------------------------------------------------------------------
figures_off, named_count, own_gap, own_gap_right, own_sum_off, broken = None, None, None, None, None, None
own_ranges: list[dict[str, Any]] = []
try:
    with limit_time(LIMIT_S):
        figures_off, named_count = 0.0, 0
        for fault, (events, answers) in planted_traces.items():
            gap_us, gap_call = my_trace.longest_gap(events)
            figures = {
                "busy_percent": my_trace.busy_percent(events),
                "exposed_us": my_trace.exposed_us(events),
                "gap_us": gap_us,
            }
            ranges = my_trace.range_us(events)
            places = ranges.keys() | answers["range_us"].keys()
            differences = [figures[key] - answers[key] for key in figures]
            differences += [ranges.get(place, 0) - answers["range_us"].get(place, 0) for place in places]
            figures_off = max(figures_off, *map(abs, differences))
            name = my_trace.name_fault(events)
            named_count += name == fault
            rows.append({"trace": fault, "reader": "yours", **figures, "gap_call": gap_call, "named": name})
        own_gap_us, own_call = my_trace.longest_gap(own_work)
        own_sums = my_trace.range_us(own_work)
        own_busy = my_trace.busy_percent(own_work)
    work_us = sum(event["dur"] for event in own_work if event.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"})
    own_ranges = [
        {"reader": "yours", "range": name or "no range", "us": sum_us, "percent": 100 * sum_us / work_us}
        for name, sum_us in sorted(own_sums.items(), key=lambda item: -item[1])
    ]
    own_sum_off = abs(sum(own_sums.values()) / work_us - 1)
    own_gap_right = own_gap_us >= 0.99e6 * PAUSE_S and (on_gpu or own_call == PAUSE_AFTER)
    own_gap = {"reader": "yours", "gap_ms": own_gap_us / 1e3, "call": own_call, "busy_percent": own_busy}
    broken = "no error"
except NotImplementedError as error:
    figures_off = named_count = None
    say(f"my_trace.py: not written yet ({error}); with it, the tables show what it finds in each trace")
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    traceback.print_exception(type(error), error, error.__traceback__, limit=-3, file=sys.stdout)
    figures_off = named_count = None
    broken = f"{type(error).__name__}: {error}"

# --- the record ----------------------------------------------------------------------------------------------------------
times = {row["trace"]: row["times"] for row in rows if row["reader"] == "the planter"}
your_busy = {row["trace"]: row["busy_percent"] for row in rows if row["reader"] == "yours"}
reason = "not written yet" if broken is None else "no result"
metrics = {
    **vars(args), "traces": rows,
    "busy": [
        {"trace": fault, "percent": answers["busy_percent"], "yours": your_busy.get(fault), "why_not": reason}
        for fault, (_, answers) in planted_traces.items()
    ],
    "own_ranges": own_ranges, "own_gap": [own_gap] if own_gap else [], "work_of": kinds,
    "broken": broken, "figures_off": figures_off, "named": named_count, "planted": len(planted_traces),
    "own_gap_right": own_gap_right, "own_sum_off": own_sum_off, "ranges_recorded": len(recorded_ranges),
    "least_times": min(times[fault] for fault in traces.FAULTS),
    "busy_lost": healthy["busy_percent"] - exposed["busy_percent"],
    "exposed_percent": 100 * exposed["exposed_us"] / exposed["span_us"],
}  # fmt: skip
if (part_file := Path(my_trace.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / part_file.name)  # the judged file, kept with the verdict
bench.say_end(bench.write_metrics("read_trace/1", device, world_size=1, seed=args.seed, metrics=metrics), device)
