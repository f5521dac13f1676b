"""Decide about virtual machines, networks, file systems and the queue of a cluster, with the numbers of your puzzle.

You will learn    which devices are in one IOMMU group; what a profile costs; how many switches and stripes a system needs;
                  and how three schedulers place a queue of gangs on racks
You will produce  how long gangs wait if they keep their order, if all that fit start, and with your scheduler
Run it            python design.py --puzzle 3
Your part         the body of `schedule` in my_gangs.py
Reading           modules/07-hpc-systems/lesson-5-decisions.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import cases
import gangs
import own_part
from bench import say

PART = "my_gangs.py"

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="decisions about the cases of a puzzle, and ten days of a cluster")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the numbers in all cases are generated")
args = parser.parse_args()
if args.puzzle < 1:
    parser.error("--puzzle must be at least 1")

# --- four decisions with numbers, for the tasks of the exercise ------------------------------------------------------------
passthrough, machines = cases.make_passthrough(args.puzzle), cases.make_machines(args.puzzle)
networks, files = cases.make_networks(args.puzzle), cases.make_checkpoints(args.puzzle)
say(f"PCI devices; the host needs {', '.join(sorted(passthrough[0].host_needs))}:\n\n{passthrough[0].listing}\n")
say("Profiles of the GPU (GiB x how many fit): " + ", ".join(f"{size} x {count}" for size, count in cases.PROFILES.items()))
say(f"Virtual machines, GiB each: {', '.join(map(str, machines))}\n")
for number, net in enumerate(networks, 1):
    say(f"Network {number}: {net.nodes} nodes, switches with {net.ports} ports, {net.ratio} links down for each link up")
for number, file in enumerate(files, 1):
    say(
        f"Checkpoint {number}: {file.gib:,} GiB of {file.ranks} ranks in {file.every_s * file.share:g} s, "
        f"{file.osts} targets of {file.ost_gb_per_s:g} GB/s"
    )

# --- ten days of the cluster -----------------------------------------------------------------------------------------------
days = gangs.make_days(args.puzzle)
part = own_part.Process(PART)
rows: list[dict] = []
for title, scheduler in (("all keep their order", gangs.keep_order), ("what fits starts", gangs.take_what_fits)):
    rows.append({"scheduler": title, **gangs.count_waits(days, scheduler, rules=False)})
outcome = part.run(None, "gangs:replay", limit_s=20, puzzle=args.puzzle)
yours = outcome.results[0] if outcome.state == "ran" else {"fault": outcome.text}
broken = None if outcome.state == "open" else int(yours["fault"] is not None)
if outcome.state == "open":
    say("\nyours: not written yet; a row shows how long the gangs wait with your scheduler")
elif yours["fault"]:
    say(f"\nyours: {yours['fault']}")
else:
    rows.append({"scheduler": "yours"} | {key: value for key, value in yours.items() if key != "fault"})
say(f"\n{len(days)} days, each with {len(days[0].gangs)} gangs on {days[0].racks} racks of {days[0].size} nodes:")
bench.say_table(rows, {"scheduler": "scheduler", "mean_wait_min": "mean wait min", "longest_wait_min": "longest",
                       "largest_wait_min": "largest gang", "busy_percent": "busy %"})  # fmt: skip

if outcome.state == "ran":
    say(f"\nBy the rules of the lesson, the virtual machines need {cases.gpus_needed(machines, cases.PROFILES)} GPUs.")
    for number, net in enumerate(networks, 1):
        leaves, spines = net.right()
        say(f"Network {number}: {leaves} lower and {spines} upper {'switch' if spines == 1 else 'switches'}")
    for number, file in enumerate(files, 1):
        choice = file.right()
        words = f"{choice[0]} stripes of {choice[1]} MiB" if choice else "no number of stripes is enough"
        say(f"Checkpoint {number}: {words}")

# --- the record ------------------------------------------------------------------------------------------------------------
in_order, fitting = rows[:2]
metrics = {
    **vars(args), "days": rows, "broken_rules": broken, "fault": yours["fault"],
    "passing_of_in_order": fitting["mean_wait_min"] / in_order["mean_wait_min"],
    "wait_of_in_order": yours["mean_wait_min"] / in_order["mean_wait_min"] if yours.get("mean_wait_min") else None,
    "gpus_by_memory": -(-sum(machines) // max(cases.PROFILES)),
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
part_file = Path(__file__).resolve().with_name(PART)
if part_file.parent != out.resolve():
    shutil.copyfile(part_file, out / PART)
path = bench.write_metrics("design/2", bench.here(), world_size=1, seed=args.puzzle, metrics=metrics)
bench.say_end(path, bench.here())
