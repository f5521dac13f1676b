"""Overlapped pipeline: copies to the GPU, kernels and copies back at the same time, ordered only by streams and events.

You will learn    what a stream orders and what it does not, what an event is, how many buffers three engines need
You will produce  the timeline of your pipeline, its hazards with both operations named, the overlap by the number of buffers
Run it            python overlapped_pipeline.py --chunks 8                   (replayed, without a GPU)
                  python overlapped_pipeline.py --megabytes 64               (on a GPU: real streams and events)
Your part         predict the shortest time; then overlap the three engines in my_pipeline.py
Reading           modules/05-gpu-programming/lesson-6-overlap.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import my_pipeline
import streams
from bench import say

MAX_MEGABYTES = 2048  # of page-locked host memory for the inputs; the outputs take as much again

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="overlap copies and kernels")
parser.add_argument("--chunks", type=int, default=16, help="pieces that the work is divided into")
parser.add_argument("--buffers", type=int, default=3, help="how many chunks fit on the device at the same time")
parser.add_argument("--megabytes", type=int, default=64, help="size of a chunk on a GPU")
parser.add_argument("--copy-in", type=float, default=1.0, help="duration of a copy in, in the replay")
parser.add_argument(
    "--compute",
    type=float,
    default=1.0,
    help="duration of a kernel, in the replay; on a GPU, a multiple of the duration of a copy in",
)
parser.add_argument("--copy-out", type=float, default=1.0, help="duration of a copy out, in the replay")
args = parser.parse_args()
if args.chunks < 2 or min(args.buffers, args.megabytes) < 1 or min(args.copy_in, args.compute, args.copy_out) <= 0:
    parser.error("--chunks must be at least 2, --buffers and --megabytes at least 1, and durations above 0")
if args.chunks * args.megabytes > MAX_MEGABYTES:
    memory_text = f"{args.chunks} chunks of {args.megabytes} MB are {args.chunks * args.megabytes:,} MB of page-locked memory"
    parser.error(f"{memory_text}, and as much again for the results; chunks x megabytes may be at most {MAX_MEGABYTES}")

# --- set-up ------------------------------------------------------------------------------------------------------------
device = bench.here()
units = (args.copy_in, args.compute, args.copy_out)
sequential = args.chunks * sum(units)
best = streams.best_units(args.chunks, units, args.chunks)
speedup_of_twice = 2 * sequential / streams.best_units(2 * args.chunks, units, 2 * args.chunks)
say(f"{args.chunks} chunks through {args.buffers} buffers; units: copy in {units[0]:g}, compute {units[1]:g}, "
    f"copy out {units[2]:g}")  # fmt: skip


def run_in_one_stream(gpu: Any, chunks: int) -> None:
    """Do the same work without any overlap, for comparison."""
    stream = gpu.stream()
    for chunk in range(chunks):
        gpu.copy_in(stream, chunk, 0)
        gpu.compute(stream, 0)
        gpu.copy_out(stream, 0, chunk)


def replay(way: str, run: Any, buffers: int) -> tuple[dict[str, Any], streams.Replay]:
    """Replay a pipeline, and return its time, its hazards, its wrong chunks and its timeline."""
    replayed = streams.ReplayedDevice(args.chunks, buffers, units)
    run(replayed, args.chunks)
    spans = streams.replay(replayed.operations)
    hazards = streams.find_hazards(replayed.operations)
    row = {
        "way": way, "buffers": buffers, "units": spans.units, "speedup": sequential / spans.units if spans.units else None,
        "overlap_percent": streams.overlap_percent(spans.units, sequential, best), "hazards": len(hazards),
        "first_hazard": str(hazards[0]) if hazards else None,
        "chunks_wrong": streams.count_wrong(replayed.operations, hazards, args.chunks, buffers),
    }  # fmt: skip
    return row, spans


# --- the experiment ----------------------------------------------------------------------------------------------------
one_stream, spans = replay("one stream", run_in_one_stream, args.buffers)
timeline = f"one stream, {spans.units:g} units\n{streams.draw(spans, sequential)}\n"
yours, broken, by_buffers, on_gpu = None, "no error", [], None
try:
    yours, spans = replay("yours", my_pipeline.run, args.buffers)
    timeline += f"\nyours, {spans.units:g} units\n{streams.draw(spans, sequential)}\n"
    for buffers in range(1, max(4, args.buffers) + 1):
        row, _ = replay("yours", my_pipeline.run, buffers)
        most = streams.overlap_percent(streams.best_units(args.chunks, units, buffers), sequential, best)
        by_buffers.append({"buffers": buffers, "overlap_percent": row["overlap_percent"], "most_percent": most})
    if device.type == "cuda":
        import gpu_streams

        on_gpu = gpu_streams.measure(
            my_pipeline.run, run_in_one_stream, args.chunks, args.buffers, args.megabytes, args.compute
        )
except Exception as error:  # noqa: BLE001 (the learner's code may fail in any way; the error is shown)
    broken = f"{type(error).__name__}: {error}"
    traceback.print_exc(file=sys.stdout)

say(f"\n{timeline}")
if yours:
    say(f"yours saves {yours['overlap_percent']:.0f}% of what overlapping can save ({sequential:g} units down to {best:g})")
    if yours["hazards"]:
        say(f"{yours['hazards']} hazards; the first:\n{yours['first_hazard']}\n"
            f"In the worst order that this permits, {yours['chunks_wrong']} chunks come back wrong.")  # fmt: skip
    elif yours["chunks_wrong"]:
        say(f"no hazard, but {yours['chunks_wrong']} chunks come back wrong")
if by_buffers:
    columns = {"buffers": "buffers", "overlap_percent": "your overlap %", "most_percent": "possible %"}
    bench.say_table(by_buffers, columns)
ways = [one_stream, *([yours] if yours else []), {"way": "best possible", "units": best, "speedup": sequential / best,
                                                  "overlap_percent": 100.0, "hazards": 0}]  # fmt: skip
if on_gpu:
    for row, key in zip(ways, ("sequential_ms", "yours_ms", "best_ms"), strict=True):
        row["ms"] = on_gpu[key]
    ways.append({"way": "yours, pageable memory", "ms": on_gpu["pageable_ms"]})
    bench.say_table(ways, {"way": "way", "ms": "ms"}, title=f"On {bench.environment(device)['device']}, milliseconds:")
else:
    say(
        "\nReplayed from what your pipeline queued; no time was measured.\nOn a GPU the same calls use real streams and events."
    )

# --- the record ----------------------------------------------------------------------------------------------------------
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / "timeline.txt").write_text(timeline, encoding="utf-8")
if (part_file := Path(my_pipeline.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / "my_pipeline.py")  # the judged file, kept with the verdict
reached = broken == "no error" and not yours["hazards"] and yours["overlap_percent"] > 0
metrics = {
    **vars(args), "best_units": best, "sequential_units": sequential, "ways": ways,
    "gain_of_twice_the_chunks": speedup_of_twice / (sequential / best),
    "one_stream": one_stream, "yours": yours or dict.fromkeys(one_stream), "broken": broken, "by_buffers": by_buffers,
    "two_buffers_percent": by_buffers[1]["overlap_percent"] if reached else None, "gpu": on_gpu or {}, "timeline": timeline,
}  # fmt: skip
path = bench.write_metrics("overlapped_pipeline/1", device, world_size=1, seed=0, metrics=metrics)
bench.say_end(path, device)
