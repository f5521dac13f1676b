"""Decide about virtual machines, networks, file systems and schedulers: your five rules are tested on the cases of a puzzle.

You will learn    what belongs together in an IOMMU group; what a profile costs; how many switches and stripes a system needs
You will produce  a decision for each of thirteen cases, and the reason for each that is wrong
Run it            python design.py --puzzle 3
Your part         the five functions of my_design.py
Reading           modules/07-hpc-systems/lesson-5-decisions.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import cases
import my_design
from bench import say

SEED = 0

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="five decisions about the cases of a puzzle")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the numbers in all cases are generated")
args = parser.parse_args()
if args.puzzle < 1:
    parser.error("--puzzle must be at least 1")

# --- the cases: kind, name, what is right, and how your part is called -----------------------------------------------------
Question = tuple[str, str, object, Callable[[], object]]
questions: list[Question] = []
for case in cases.make_passthrough(args.puzzle):
    needs = set(case.host_needs)
    questions.append(("passthrough", case.gpu, case.right(), lambda c=case, n=needs: my_design.to_vfio(c.listing, c.gpu, n)))
machines = cases.make_machines(args.puzzle)
questions.append((
    "vGPU", f"{len(machines)} machines, {sum(machines)} GiB", cases.gpus_needed(machines, cases.PROFILES),
    lambda: my_design.gpus_needed(list(machines), dict(cases.PROFILES)),
))  # fmt: skip
for net in cases.make_networks(args.puzzle):
    name = f"{net.nodes} nodes, {net.ports} ports, {net.ratio}:1"
    questions.append(("fat tree", name, net.right(), lambda n=net: my_design.switches(n.nodes, n.ports, n.ratio)))
for file in cases.make_checkpoints(args.puzzle):
    name = f"{file.gib:,} GiB, {file.ranks} ranks, {file.every_s * file.share:g} s, {file.osts} targets"
    checkpoint_numbers = (file.gib, file.ranks, file.every_s, file.share, file.ost_gb_per_s, file.osts)
    questions.append(("stripes", name, file.right(), lambda g=checkpoint_numbers: my_design.stripes(*g)))
for name, needs_of in cases.WORKLOADS.items():
    right = cases.right_scheduler(needs_of)
    questions.append(("scheduler", name, right, lambda n=needs_of: my_design.scheduler(**n)))


def _plain(value: object) -> object:
    """Return a tuple as a list, because a pair may be a tuple or a list."""
    return list(value) if isinstance(value, tuple) else value


# --- your decisions ----------------------------------------------------------------------------------------------------------
rows: list[dict] = []
for kind, name, right, ask in questions:
    try:
        answer: object = ask()
        rows.append({"kind": kind, "case": name, "yours": str(answer), "right": _plain(answer) == _plain(right)})
    except NotImplementedError:
        rows.append({"kind": kind, "case": name, "yours": None, "right": None})
shown_puzzle = cases.make_passthrough(args.puzzle)[0]
host = ", ".join(sorted(shown_puzzle.host_needs))
say(f"The PCI devices of the computer; its host needs {host}:\n\n{shown_puzzle.listing}\n")
say("Profiles of the GPU (GiB x how many fit): " + ", ".join(f"{size} x {count}" for size, count in cases.PROFILES.items()))
say(f"Machines, GiB each: {', '.join(map(str, machines))}\n")
bench.say_table(
    [row | {"judged": "open" if row["right"] is None else "right" if row["right"] else "wrong"} for row in rows],
    {"kind": "decision", "case": "case", "yours": "yours", "judged": ""},
)

# --- the record ------------------------------------------------------------------------------------------------------------


def count_wrong(kind: str) -> int | None:
    """Return how many cases of a kind are decided wrongly, or None if the function is not written."""
    verdicts = [row["right"] for row in rows if row["kind"] == kind]
    return None if None in verdicts else verdicts.count(False)


metrics = {
    **vars(args), "cases": rows,
    "wrong": {"passthrough": count_wrong("passthrough"), "vgpu": count_wrong("vGPU"), "fat_tree": count_wrong("fat tree"),
              "stripes": count_wrong("stripes"), "scheduler": count_wrong("scheduler")},
    "decided": sum(row["right"] is not None for row in rows), "gpus_by_memory": -(-sum(machines) // max(cases.PROFILES)),
    "gpus_least": cases.gpus_needed(machines, cases.PROFILES),
    "switches_of_48": sum(cases.make_networks(args.puzzle)[0].right()),
    "lower_switches": cases.make_networks(args.puzzle)[1].right()[0],
}  # fmt: skip
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)
if (part_file := Path(my_design.__file__)).parent.resolve() != out.resolve():
    shutil.copyfile(part_file, out / part_file.name)
path = bench.write_metrics("design/1", bench.here(), world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, bench.here())
