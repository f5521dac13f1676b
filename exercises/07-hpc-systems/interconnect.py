"""Interconnect: how GPUs are linked, which GPUs should work together, and how fast the links of this computer are.

You will learn    to read `nvidia-smi topo -m`; why groups and rings are chosen by their slowest link; what a message costs, and
                  what each of its bytes costs
You will produce  the best groups and rings of six computers; bytes per second by size over each link of this computer
Run it            python interconnect.py --puzzle 3
Your part         `read`, `find_groups` and `find_ring` in my_topology.py
Reading           modules/07-hpc-systems/lesson-2-links.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bandwidth
import bench
import gpu_links
import gpus
import links
import my_topology
import topology
import torch
from bench import say

SEED, LIMIT_S = 0, 20  # seconds of the processor that your part may take for one computer
SPEEDS = {"PCIe 3 x16": 15.75, "PCIe 4 x16": 31.5, "NVLink 3": 300.0, "25 Gbit/s Ethernet": 3.125}  # GB/s in one direction
RESNET_BYTES = 102e6  # the gradients of a ResNet-50

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="read and judge listings of links, and time the links of this computer")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the fifth computer is generated")
parser.add_argument("--size", type=int, default=4, help="GPUs in a group: 2 or 4")
parser.add_argument("--gib", type=float, default=1.0, help="GiB of the all-reduce whose time is calculated")
parser.add_argument("--ranks", type=int, default=8, help="ranks in the all-reduce whose time is calculated")
parser.add_argument("--max-bytes", type=int, default=536870912, help="size of the largest message; the smallest is 64 KiB")
args = parser.parse_args()
if args.puzzle < 1 or args.size not in (2, 4) or args.gib <= 0 or args.ranks < 2 or args.max_bytes < 1 << 18:
    parser.error("--puzzle must be at least 1, --size 2 or 4, --gib above 0, --ranks at least 2, --max-bytes at least 262144")
device = bench.here()
gpu = gpus.find(torch.cuda.get_device_name(device)) if device.type == "cuda" else None


# --- the listings --------------------------------------------------------------------------------------------------------
def count_wrong(listing: topology.Listing) -> int:
    """Return how many cells of a listing your part reads wrong."""
    answer, count = my_topology.read(listing.text), len(listing.links)
    if len(answer) != count or any(len(row) != count for row in answer):
        return count**2
    return sum(answer[a][b] != listing.links[a][b] for a in range(count) for b in range(count))


def search(listing: topology.Listing) -> Iterator[dict[str, object]]:
    """Yield the groups and then the ring of your part, each compared with the best."""
    table = listing.links
    groups = my_topology.find_groups(topology.count_reads(table), args.size)
    yield {
        "groups": " ".join("-".join(map(str, group)) for group in groups),
        "groups_best": topology.group_score(table, groups) == listing.best.groups[args.size],
    }
    order = my_topology.find_ring(topology.count_reads(table))
    yield {
        "ring": "-".join(map(str, order)), "ring_best": topology.ring_score(table, order) == listing.best.ring,
        "ring_ms": time_ring(table, order), "no_ring": None,
    }  # fmt: skip


def time_ring(table: topology.Links, order: list[int]) -> float:
    """Return the milliseconds of an all-reduce of `--gib` in a ring, by the assumed speed of its slowest hop."""
    sent_gb = bandwidth.bus_factor("all_reduce", len(order)) * args.gib * 2**30 / 1e9
    return 1e3 * sent_gb / topology.ring_speed(table, order)


def end_part(*_: object) -> None:
    """Raise TimeoutError inside your part, because its time is over."""
    raise TimeoutError(f"it took {LIMIT_S} s of the processor")


signal.signal(signal.SIGVTALRM, end_part)
rows: list[dict] = []
is_written = True
for listing in topology.listings(args.puzzle):
    best = listing.best.groups[args.size], listing.best.ring
    row = {
        "name": listing.name, "gpus": len(listing.links), "pairs_wrong": None, "groups": None, "ring": None,
        "best_groups": topology.name_score(listing.links, best[0]), "best_ring": topology.name_score(listing.links, best[1]),
        "groups_best": None, "ring_best": None, "numbered_ms": time_ring(listing.links, list(range(len(listing.links)))),
        "ring_ms": None, "no_ring": "my_topology.py is not written",
    }  # fmt: skip
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        row["pairs_wrong"] = count_wrong(listing)
        for result in search(listing):
            row |= result
    except NotImplementedError:
        is_written = False
    except (topology.TooManyReadsError, TimeoutError) as error:
        row["no_ring"] = str(error)
        say(f"{listing.name}: your part was ended, because {error}")
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    rows.append(row)
say(f"{rows[4]['name']}, as nvidia-smi topo -m would print it:\n\n{topology.listings(args.puzzle)[4].text.split('Legend')[0]}")
bench.say_table(rows, {"name": "computer", "best_groups": f"best groups of {args.size}: slowest links", "groups": "yours",
                       "best_ring": "best ring: slowest hops", "ring": "yours"})  # fmt: skip
say(f"\nAn all-reduce of {args.gib:g} GiB in a ring, by assumed speeds of the links")
bench.say_table(rows, {"name": "computer", "numbered_ms": "in the order of the numbers, ms", "ring_ms": "in your ring, ms"})
if not is_written:
    say("Your part is not written yet: my_topology.py")

# --- the links of this computer ----------------------------------------------------------------------------------------------
sizes = links.sizes_up_to(args.max_bytes)
sweep: list[dict] = []
values_wrong = 0
with links.Links(args.max_bytes) as host_links:
    for size in sizes:  # one way after the other, so that other load of the computer affects all of them
        for way in (links.INSIDE, links.SHARED, links.TCP):
            median_s = statistics.median(host_links.time(way, size))
            values_wrong += not host_links.has_arrived(way, size)
            sweep.append({"way": way, "bytes": size, "median_us": median_s * 1e6, "gb_per_s": size / median_s / 1e9,
                          "percent_of_link": None, "refused": False})  # fmt: skip
if device.type == "cuda":
    sweep += gpu_links.measure(sizes, device, gpu.gb_per_s if gpu else None)
fits = []
for way in dict.fromkeys(row["way"] for row in sweep):
    points = [row for row in sweep if row["way"] == way and not row["refused"]]
    fits.append({"way": way, "smallest_us": points[0]["median_us"], "largest_gb_per_s": points[-1]["gb_per_s"]})
bench.say_table(fits, {"way": "link", "smallest_us": "64 KiB, µs", "largest_gb_per_s": "largest, GB/s"})
if device.type != "cuda":
    say("PCIe and NVLink: not measured, because there is no GPU here.")

# --- the record ------------------------------------------------------------------------------------------------------------
moved = bandwidth.bus_factor("all_reduce", args.ranks) * args.gib * 2**30
computed = [{"link": link, "gb_per_s": speed, "ms": moved / speed / 1e6} for link, speed in SPEEDS.items()]
say("\n" + bench.table(computed, {"link": "link", "gb_per_s": "GB/s, one way", "ms": f"all-reduce of {args.gib:g} GiB, ms"}))
by_way = {row["way"]: row for row in fits}
pinned, pageable = (by_way.get(way, {}).get("largest_gb_per_s") for way in (gpu_links.PINNED, gpu_links.PAGEABLE))
metrics = {
    **vars(args), "listings": rows, "sweep": sweep, "fits": fits, "reckoned": computed,
    "all_reduce_ms": {row["link"]: row["ms"] for row in computed}, "pcie4_ms": computed[1]["ms"],
    "pairs_wrong": sum(row["pairs_wrong"] for row in rows) if is_written else None,
    "groups_not_best": sum(not row["groups_best"] for row in rows) if is_written else None,
    "rings_not_best": sum(not row["ring_best"] for row in rows) if is_written else None,
    "values_wrong": values_wrong, "refused": sum(row["refused"] for row in sweep),
    "loopback_times": by_way[links.TCP]["smallest_us"] / by_way[links.INSIDE]["smallest_us"],
    "loopback_us": by_way[links.TCP]["smallest_us"], "loopback_gb_per_s": by_way[links.TCP]["largest_gb_per_s"],
    "resnet_by_tcp_ms": RESNET_BYTES / by_way[links.TCP]["largest_gb_per_s"] / 1e6,
    "pinned_gain": pinned / pageable if pinned and pageable else None,
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
(out / "topology.txt").write_text(
    "\n\n".join(f"{listing.name}\n{listing.text.split('Legend')[0]}" for listing in topology.listings(args.puzzle))
)
if (part_file := Path(my_topology.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / part_file.name)
path = bench.write_metrics("interconnect/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
