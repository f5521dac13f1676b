"""Run any script unchanged under PyTorch's profiler, which shows in a table and a trace where the time went.

You will learn    which operations of your script take the time, and how long the processor waits for the device
You will produce  profile.txt (the table), profile.json (its rows), trace.json.gz (for https://ui.perfetto.dev), each per rank
Run it            gpucourse run --script mine.py --profile, or by hand: python profiled.py mine.py ARGUMENTS
Your part         find the first line of the table that surprises you
Reading           modules/01-basic-gpu/lesson.md, "How to time a GPU"
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

ROWS, SHOWN = 50, 10


def main() -> None:
    """Run the script that the first argument names, as `python` would, then write the profile."""
    if len(sys.argv) < 2:
        sys.exit("which script? python profiled.py SCRIPT ARGUMENTS")
    sys.argv = sys.argv[1:]
    script = Path(sys.argv[0]).resolve()
    sys.path[0] = str(script.parent)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
    script_exit: SystemExit | None = None
    with profile(activities=activities) as profiler:
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as error:  # the script may end in this way, and the profile is still written
            script_exit = error
    write(profiler, cuda=ProfilerActivity.CUDA in activities)
    if script_exit is not None:
        raise script_exit


def write(profiler: profile, *, cuda: bool) -> None:
    """Write the table, its rows and the trace into GPUCOURSE_OUT or the current folder.

    If there are several ranks, the names contain the rank.
    """
    out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
    out.mkdir(parents=True, exist_ok=True)
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    rank = os.environ.get("RANK", "0")
    suffix = f"-rank{rank}" if several else ""
    events = profiler.key_averages()
    key = "self_device_time_total" if cuda else "self_cpu_time_total"
    ordered = sorted(events, key=lambda event: getattr(event, key), reverse=True)[:ROWS]
    total = sum(getattr(event, key) for event in events) or 1.0
    rows = [
        {
            "operation": event.key, "calls": event.count, "self_ms": getattr(event, key) / 1e3,
            "percent": 100 * getattr(event, key) / total,
        }
        for event in ordered
    ]  # fmt: skip
    place = "on the GPU" if cuda else "on the processor"
    (out / f"profile{suffix}.json").write_text(json.dumps({"where": place, "rows": rows}, indent=2) + "\n", encoding="utf-8")
    (out / f"profile{suffix}.txt").write_text(events.table(sort_by=key, row_limit=ROWS) + "\n", encoding="utf-8")
    profiler.export_chrome_trace(str(out / f"trace{suffix}.json.gz"))
    if rank == "0":
        lines = [f"{'operation':<44} {'calls':>7} {'ms':>10} {'%':>6}"]
        lines += [
            f"{r['operation'][:44]:<44} {r['calls']:>7,} {r['self_ms']:>10,.2f} {r['percent']:>6.1f}" for r in rows[:SHOWN]
        ]
        sys.stdout.write(f"\nwhere the time went, {place}:\n" + "\n".join(lines) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
