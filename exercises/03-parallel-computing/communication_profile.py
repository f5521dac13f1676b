"""Communication profiling: how long each collective takes at each size, and the bandwidth that follows.

You will learn    how long AllReduce, Broadcast, AllGather and ReduceScatter take; algorithm and bus bandwidth; how to read
                  latency and bandwidth from a sweep; the size from which a link is fully used (the plateau)
You will produce  a line for each size; metrics.json with times, bandwidths, two lines and the plateau of each collective
Run it            torchrun --nproc-per-node=2 communication_profile.py --max-bytes 16777216 --factor 4      (two ranks here)
                  torchrun --nnodes=2 --node-rank=0 --nproc-per-node=1 --master-addr=10.0.0.1 --master-port=29500 \\
                           communication_profile.py --link-gbps 10     (on the first node; --node-rank=1 on the second)
Your part         my_line.py, which finds latency, bandwidth and plateau in the raw times of this run
Reading           modules/03-parallel-computing/lesson.md, "What an AllReduce costs" and "Which bandwidth?"
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bandwidth
import bench
import nccl_tests
import own_lines
import own_part
import ranks
import torch
import torch.distributed as dist
from bench import say

SEED, PERIOD, MIN_SIZES = 0, 97, 7
TITLES = {"all_reduce": "AllReduce", "broadcast": "Broadcast", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="time, bandwidth, latency and plateau of collectives over sizes")
parser.add_argument("--collective", type=str, default="all", choices=["all", *TITLES], help="the collective to time, or all")
parser.add_argument("--min-bytes", type=int, default=1024, help="the smallest tensor")
parser.add_argument("--max-bytes", type=int, default=1073741824, help="the largest tensor")
parser.add_argument("--factor", type=int, default=2, help="ratio of each size to the previous size")
parser.add_argument("--link-gbps", type=float, default=0.0, help="speed of the slowest link, Gbit/s; 0: the lab's figure")
args = parser.parse_args()
if not (4 <= args.min_bytes <= args.max_bytes and args.factor >= 2 and 0 <= args.link_gbps < math.inf):
    parser.error("4 <= --min-bytes <= --max-bytes, --factor >= 2 and --link-gbps >= 0 are needed")

learner_part = (
    own_part.Process("my_line.py") if os.environ.get("RANK", "0") == "0" else None
)  # your part reads the times on rank 0

# --- set-up ------------------------------------------------------------------------------------------------------------
world = ranks.join()
rank, size, device = world.rank, world.size, world.device
if size < 2:
    sys.exit(
        "one rank has no partner: start two (gpucourse run 3.3 --nodes 2). If there is only one GPU, let them use CPUs: "
        "GPUCOURSE_BACKEND=gloo torchrun --nproc-per-node=2 communication_profile.py --max-bytes 4194304"
    )
say(f"rank {rank} of {size} is on {bench.node_label()} ({device})")
collectives = list(TITLES) if args.collective == "all" else [args.collective]
gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # one operation, renamed in PyTorch 2.13
scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def can_scatter() -> bool:
    """Return whether this backend has ReduceScatter. Older versions of gloo do not: every rank then gets an error
    immediately."""
    try:
        scatter(torch.zeros(1, device=device), torch.zeros(size, device=device))
    except (RuntimeError, NotImplementedError) as error:
        say(f"rank {rank}: no ReduceScatter here ({error}); AllReduce takes its place, and every rank keeps its part")
        return False
    return True


def prepare(collective: str, count: int) -> tuple[Callable[[], object], torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the call on `count` elements, the tensor that it reads, the tensor that it fills, and the right values of the
    filled tensor.

    The tensor that is read has known values: element i of rank r is i % 97 + r + 1. So a lost, doubled or misplaced part is
    detected.
    """
    part = slice(count // size * rank, count // size * (rank + 1))
    pattern = torch.arange(count, dtype=torch.int32, device=device).remainder_(PERIOD).float()
    total = size * pattern + size * (size + 1) / 2  # exact in float32
    contribution = pattern + (rank + 1)
    if collective == "all_reduce":
        return lambda: dist.all_reduce(contribution), contribution, contribution, total
    if collective == "broadcast":
        return lambda: dist.broadcast(contribution, src=0), contribution, contribution, pattern + 1
    if collective == "all_gather":
        own_share, gathered = contribution[: count // size].clone(), torch.full_like(pattern, math.nan)
        expectation = torch.cat([pattern[: count // size] + (other_rank + 1) for other_rank in range(size)])
        return lambda: gather(gathered, own_share), own_share, gathered, expectation
    if not scatters:
        return lambda: dist.all_reduce(contribution), contribution, contribution[part], total[part]
    buffer = torch.full_like(pattern[part], math.nan)
    return lambda: scatter(buffer, contribution), contribution, buffer, total[part]


# --- the experiment: every size is first checked, then timed -----------------------------------------------------------
args.link_gbps = args.link_gbps or float(os.environ.get("GPUCOURSE_LINK_GBPS", "0"))  # simulated, with a set speed
burst = int(os.environ.get("GPUCOURSE_LINK_BURST_BYTES", "0"))  # bytes that such a link passes before it slows down
scatters, link = can_scatter(), args.link_gbps / 8 or None  # bits to bytes
largest = max(args.min_bytes, min(args.max_bytes, world.free_bytes() // 8))  # buffers, patterns, expected values
if largest < args.max_bytes and rank == 0:
    say(f"rank 0: sizes end at {largest:,} bytes, an eighth of the free memory")
steps = itertools.takewhile(lambda step: step <= largest, (args.min_bytes * args.factor**power for power in itertools.count()))
counts = sorted({max(1, step // (4 * size)) * size for step in steps})  # float32 elements, an equal part for each rank
sweep: list[dict] = []
curves: dict[str, own_lines.Samples] = {TITLES[collective]: [] for collective in collectives}  # every call, for your part
for collective in collectives:
    for count in counts:
        call, source, result, right_values = prepare(collective, count)
        call()
        wrong_count = int(world.reduce(float((result != right_values).sum()), dist.ReduceOp.SUM))  # NaN differs from everything
        source.zero_()  # AllReduce works in place: any other values would grow with each call
        seconds = bench.time_calls(
            call, device, budget_s=0.1, agree=lambda value: world.slowest([value])[0], prepare=dist.barrier
        )
        slowest = world.slowest(seconds)  # all begin together (the barrier), and the last one to finish ends the call
        curves[TITLES[collective]] += [(4 * count, value) for value in slowest]
        median = bench.percentile(slowest, 50)
        row = {
            "collective": TITLES[collective], "bytes": 4 * count, "elements": count, "dtype": "float32",
            "via": "all_reduce" if collective == "reduce_scatter" and not scatters else collective,
            "median_us": median * 1e6, "p99_us": bandwidth.nearest_rank(slowest, 99) * 1e6, "samples": len(slowest),
            "algbw_gb_per_s": bandwidth.algbw(4 * count, median),
            "busbw_gb_per_s": bandwidth.busbw(collective, 4 * count, median, size), "link_gb_per_s": link, "wrong": wrong_count,
        }  # fmt: skip
        sweep.append(row)
    if rank == 0:
        rows = [row for row in sweep if row["collective"] == TITLES[collective]]
        best = max(row["busbw_gb_per_s"] for row in rows)
        say(f"{TITLES[collective]}: {len(rows)} sizes up to {rows[-1]['bytes']:,} bytes, at most {best:.3g} GB/s on the bus")
        bench.say_table(rows, {"bytes": "bytes", "median_us": "median µs", "busbw_gb_per_s": "busbw GB/s", "wrong": "wrong"})

# --- results of the sweep: t = latency + S / bandwidth, and where the curve becomes flat ---------------------------------
summary, lines = [], {}
for collective in collectives:
    rows = [row for row in sweep if row["collective"] == TITLES[collective]]
    line = bandwidth.join_ends([row["bytes"] for row in rows], [row["median_us"] / 1e6 for row in rows])
    lines[TITLES[collective]] = line
    flat = bandwidth.plateau([row["bytes"] for row in rows], [row["busbw_gb_per_s"] for row in rows])
    best = max(rows, key=lambda row: row["busbw_gb_per_s"])
    error = line and own_lines.typical_error_percent(curves[TITLES[collective]], *line)
    hops = {"all_reduce": 2 * (size - 1), "all_gather": size - 1, "reduce_scatter": size - 1}.get(collective)  # of a ring
    lasting = max((row["busbw_gb_per_s"] for row in rows if row["bytes"] >= 8 * burst), default=None)
    summary.append({
        "collective": TITLES[collective], "smallest_us": rows[0]["median_us"],
        "latency_us": line and line[0] * 1e6, "typical_error_percent": error,
        "message_us": line[0] * 1e6 / hops if line and hops else None,
        "asymptote_busbw_gb_per_s": line and line[1] / 1e9 * bandwidth.bus_factor(collective, size),
        "best_busbw_gb_per_s": best["busbw_gb_per_s"],
        "best_bytes": best["bytes"], "plateau_bytes": flat.size, "plateau": flat.words,
        "last_doubling_gain_percent": flat.gain_percent,
        "percent_of_link": 100 * lasting / link if link and lasting else None,
    })  # fmt: skip


outcome = (
    learner_part.run(None, "own_lines:read_curves", curves=curves)
    if learner_part and len(counts) >= MIN_SIZES
    else own_part.Outcome("open")
)
factors = {TITLES[collective]: bandwidth.bus_factor(collective, size) for collective in collectives}
own_rows = own_lines.make_rows(outcome, curves, factors)


def above_link(row: dict) -> bool:
    """Return whether a row's bytes on the busiest link are more than the link can carry in the measured time."""
    crossed = row["busbw_gb_per_s"] * row["median_us"] * 1e3  # GB/s times us, in bytes
    return link is not None and crossed - burst > 1.000001 * link * row["median_us"] * 1e3


# --- comparison with NVIDIA's own program, if this node has it -----------------------------------------------------------
hosts = len(set(world.gather(socket.gethostname())))
if rank == 0:
    own_busbw = {row["bytes"]: row["busbw_gb_per_s"] for row in sweep if row["collective"] == "AllReduce"}
    gpus = size if device.type == "cuda" else 0
    reference_rows, why_not = nccl_tests.compare(own_busbw, high=largest, factor=args.factor, gpus=gpus, hosts=hosts)
world.wait_for_all()

# --- the record ----------------------------------------------------------------------------------------------------------
if rank == 0:
    speeds = {row["bytes"]: row["algbw_gb_per_s"] for row in sweep if row["collective"] == "AllReduce"}
    metrics = {
        **vars(args), "backend": dist.get_backend(), "hosts": hosts, "link_gb_per_s": link,
        "sweep": sweep, "summary": summary + own_rows,
        "lines": own_lines.list_points(outcome, name := TITLES[collectives[0]], curves[name], lines[name]),
        "own": {"state": outcome.state, "result": own_lines.describe(outcome, own_rows, summary, curves)},
        "gain_of_1_mib": speeds[1 << 20] / speeds[1 << 10] if {1 << 10, 1 << 20} <= speeds.keys() else None,
        "collectives": len(collectives), "sizes": len(counts),
        "allreduce": next((row for row in summary if row["collective"] == "AllReduce"), dict.fromkeys(summary[0])),
        "plateaus_reached": sum(row["plateau_bytes"] is not None for row in summary),
        "above_link": sum(map(above_link, sweep)), "link_burst_bytes": burst,
        "beside_all_reduce_perf": reference_rows, "all_reduce_perf_not_run": why_not,
    }  # fmt: skip
    titles = {"collective": "collective", "latency_us": "latency µs", "asymptote_busbw_gb_per_s": "asymptote GB/s",
              "best_busbw_gb_per_s": "best GB/s", "plateau": "plateau"}  # fmt: skip
    bench.say_table(summary + own_rows, titles)
    if outcome.state == "open":
        say("Once you have written my_line.py, a sweep of at least 7 sizes has a row with your result for each collective.")
    elif outcome.state == "failed":
        say(f"Your part failed: {outcome.text}")
    say(f"compared with NVIDIA's program: {why_not or f'{len(reference_rows)} sizes, see the table'}")
    if burst:
        say(f"Software limits the link: up to {burst:,} bytes pass freely, so smaller sizes are faster than the link.")
    if device.type == "cpu" and not link and bench.is_on_one_computer():
        say("gloo on one computer: memory copies over loopback. The formulas hold everywhere, these numbers only here.")
    path = bench.write_metrics("communication_profile/1", device, world_size=size, seed=SEED, metrics=metrics)
    bench.say_end(path, device)

dist.destroy_process_group()
