"""Sharing a GPU: a way for each of several services, places for MIG's instances, and pods that request their shares.

You will learn    what time-slicing, MPS and MIG divide; where an instance may begin and why; what Kubernetes needs to know
You will produce  a plan for the services of your puzzle, drawn slice by slice; manifests without faults
Run it            python sharing.py --puzzle 3 --gpu h100-80
Your part         `way`, `profile` and `place` in my_sharing.py; the faults of my_pods.yaml
Reading           modules/07-hpc-systems/lesson.md
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "shared"))  # in a checkout; on a node all files are in one folder

import bench
import gpu_sharing
import manifests
import mig
import my_sharing
import pods
from bench import say

SEED = 0

# --- knobs -------------------------------------------------------------------------------------------------------------
parser = argparse.ArgumentParser(description="services that share GPUs")
parser.add_argument("--puzzle", type=int, default=1, help="number from which the services are generated")
parser.add_argument("--gpu", type=str, default="a100-80", choices=list(mig.CARDS), help="the card to plan for")
parser.add_argument(
    "--processes", type=str, default="1,2,4", help="numbers of processes that share this computer's GPU, if it has one"
)
parser.add_argument("--seconds", type=float, default=5.0, help="seconds of each measurement of processes that share the GPU")
args = parser.parse_args()
counts = [int(word) for word in args.processes.split(",")]
if not 1 <= args.puzzle <= mig.PUZZLES or args.seconds <= 0 or min(counts) < 1:
    parser.error(f"--puzzle must be from 1 to {mig.PUZZLES}, --seconds above 0, and --processes at least 1")
card, device = mig.CARDS[args.gpu], bench.here()
out = Path(os.environ.get("GPUCOURSE_OUT") or ".")
out.mkdir(parents=True, exist_ok=True)

# --- the plan ----------------------------------------------------------------------------------------------------------
services = mig.make_services(args.puzzle, card)
ways, names, places, is_written = [], [], [], True
try:
    ways = [my_sharing.way(asdict(service), card.describe()) for service in services]
    names = [my_sharing.profile(asdict(service), card.describe()) if way == "mig" else None
             for service, way in zip(services, ways, strict=True)]  # fmt: skip
    places = [tuple(spot) for spot in my_sharing.place([name for name in names if name], card.describe())] if any(names) else []
except NotImplementedError:
    is_written = False
needs = mig.read_needs(args.puzzle, card)
spots = iter(places)
rows = []
for number, service in enumerate(services):
    name = names[number] if is_written else None
    gpu, start = next(spots, (None, None)) if name else (None, None)
    rows.append({"service": service.name, "gib": service.gib, "percent": service.percent, "isolated": service.isolated,
                 "within_ms": service.within_ms, "way": ways[number] if is_written else None, "profile": name, "gpu": gpu,
                 "start": start, "fits": None if not is_written else ways[number] == needs.ways[number]})  # fmt: skip
say(f"{len(services)} services on {card.name} ({card.gib} GiB{'' if card.profiles else ', no MIG'}):\n")
bench.say_table(rows, {"service": "service", "gib": "GiB", "percent": "%", "isolated": "isolated", "within_ms": "within, ms",
                       "way": "way", "profile": "profile", "gpu": "GPU", "start": "at"})  # fmt: skip
by_name = {profile.name: profile.gib for profile in card.profiles}
for row in rows:
    row["instance_gib"] = by_name.get(row["profile"])
    how = "a whole GPU" if row["way"] == "none" else f"shared by {row['way']}"
    row["no_instance"] = None if row["profile"] else how if is_written else "my_sharing.py is not written"
used = [name for name in names if name]
problems = mig.find_problems(card, used, places) if is_written else []
drawn = "\n".join(mig.draw(card, used, places)) if is_written and not problems else ""
say(f"\n{drawn or 'no instances to draw'}\n")
if not is_written:
    say("Your part is not written yet: my_sharing.py")

# --- the instances of all puzzles -----------------------------------------------------------------------------------------
fleets = [mig.read_needs(puzzle, card) for puzzle in range(1, mig.PUZZLES + 1)] if card.profiles else []


def count_gpus() -> tuple[int | None, str | None]:
    """Return the GPUs that your part takes for the isolated services of all puzzles, or None and the reason."""
    count = 0
    for puzzle in range(1, mig.PUZZLES + 1):
        described = [asdict(service) for service in mig.make_services(puzzle, card)]
        try:
            divided = [service for service in described if my_sharing.way(service, card.describe()) == "mig"]
            profile_names = [my_sharing.profile(service, card.describe()) for service in divided]
            spots = [tuple(spot) for spot in my_sharing.place(profile_names, card.describe())] if profile_names else []
            faults = mig.find_problems(card, profile_names, spots)
        except NotImplementedError:
            return None, "my_sharing.py is not written"
        except Exception as error:  # noqa: BLE001  # the learner's code may raise anything, and the other rows stay
            return None, f"puzzle {puzzle}: {error}"
        if faults:
            return None, f"puzzle {puzzle}: {faults[0]}"
        count += len({gpu for gpu, _ in spots})
    return count, None


count, no_count = count_gpus() if card.profiles else (None, None)
fleet_rows = [
    {"placed": "one on each GPU", "gpus": sum(fleet.instances for fleet in fleets), "open": None},
    {"placed": "where it is free", "gpus": sum(fleet.first_free for fleet in fleets), "open": None},
    {"placed": "yours", "gpus": count, "open": no_count},
    {"placed": "on the fewest", "gpus": sum(fleet.gpus for fleet in fleets), "open": None},
] if fleets else []  # fmt: skip
if fleet_rows:
    title = f"GPUs for the isolated services of all {mig.PUZZLES} puzzles:"
    bench.say_table(fleet_rows, {"placed": "instances placed", "gpus": "GPUs"}, title=title)

# --- the manifests -----------------------------------------------------------------------------------------------------
profiles = {profile.name: profile.gib for profile in mig.CARDS["a100-80"].profiles}
pods_file = Path(__file__).with_name("my_pods.yaml")
try:
    objects = manifests.read(pods_file.read_text(encoding="utf-8"))
    faults = [text for _, text in pods.find_faults(objects, profiles)]
    described = [{"file": pods_file.name, "kind": str(thing.get("kind")), "name": manifests.name_of(thing)}
                 for thing in objects]  # fmt: skip
except (OSError, ValueError) as error:
    faults, described = [str(error)], []
say(f"The manifests have {len(faults) or 'no'} {'fault' if len(faults) == 1 else 'faults'}.")
if not manifests.has_schemas():
    say("Kubernetes' own schemas: not asked, because kubernetes-validate is not installed here")

# --- this computer's GPU -----------------------------------------------------------------------------------------------
measured, reason = (
    gpu_sharing.measure(counts, args.seconds) if device.type == "cuda" else ([], "not measured: there is no GPU here")
)
if measured:
    bench.say_table(measured, {"way": "way", "load": "load", "processes": "processes", "requests_per_s": "requests/s",
                               "p50_ms": "p50, ms", "p99_ms": "p99, ms"})  # fmt: skip
if reason:
    say(f"MPS: {reason}")

# --- the record --------------------------------------------------------------------------------------------------------
metrics = {
    **vars(args), "services": rows, "fleet": fleet_rows, "problems": problems,
    "unplaced": len(used) - len(places) if is_written else None,
    "ways_wrong": sum(row["fits"] is False for row in rows) if is_written else None,
    "geometry_problems": len(problems) if is_written else None,
    "gpus_used": len({gpu for gpu, _ in places}) if is_written else None, "gpus_least": needs.gpus,
    "gpus_beyond_least": len({gpu for gpu, _ in places}) - needs.gpus if is_written else None,
    "wasted_memory_gib": sum(by_name[row["profile"]] - row["gib"] for row in rows if row["profile"]) if is_written else None,
    "reserved_ratio": needs.reserved_ratio, "instances": needs.instances,
    "manifests": described, "manifest_faults": faults, "faults_left": len(faults), "sharing": measured,
    "mps_gain_small": gpu_sharing.find_gain(measured, "small"), "mps_gain_full": gpu_sharing.find_gain(measured, "full"),
}  # fmt: skip
(out / "placement.txt").write_text(drawn + "\n", encoding="utf-8")
for part_path in (Path(my_sharing.__file__), pods_file):
    if part_path.parent.resolve() != out.resolve():
        shutil.copyfile(part_path, out / part_path.name)
path = bench.write_metrics("sharing/1", device, world_size=1, seed=SEED, metrics=metrics)
bench.say_end(path, device)
