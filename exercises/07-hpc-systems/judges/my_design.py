"""Judges my_design.py of 7.5 on cases of several puzzles, and compares each answer with the results of the usual mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cases
from cases import Checkpoint, Network, Passthrough

from gpucourse.judge import Case, Part, Way

WAYS = {
    "gpu-alone": Way(
        "you passed through only the GPU, but all functions of an IOMMU group can access each other's memory: "
        "{right} go together",
        ('kind != "0604"]', "address == gpu]"),
    ),
    "bridges-too": Way(
        "you passed through the PCI bridge of the group, too: bridges (class 0604) stay with the host's driver",
        (' and kind != "0604"]', "]"),
    ),
    "same-slot": Way(
        "you took the devices in the GPU's own slot, {gpu}: the group decides. 41:00.0 shares its group with a second GPU",
        ("if group == own_group and", "if address[:5] == gpu[:5] and"),
    ),
    "host-loses-it": Way(
        "the group of {gpu} has a device that the host needs: that GPU cannot be passed through alone, so the list is empty",
        ("[] if host_needs.intersection(together) else sorted(together)", "sorted(together)"),
    ),
    "memory-summed": Way(
        "you divided the memory of all machines by that of a GPU. All machines of a GPU have the same profile, so {needs} GiB "
        "take {right} GPUs",
        (
            "    remaining = sorted(needs, reverse=True)\n",
            "    return math.ceil(sum(needs) / 48)\n    remaining = list(needs)\n",
        ),
    ),
    "no-sharing": Way(
        "you left places free: a machine may have a larger profile than it needs, so free places can take smaller machines",
        ("remaining = remaining[profiles[profile] :]",
         "remaining = [need for need in remaining if min(s for s in profiles if s >= need) != profile] + [profile] * max("
         "0, sum(min(s for s in profiles if s >= need) == profile for need in remaining) - profiles[profile])"),
    ),
    "smallest-first": Way(
        "you began with the smallest need: its profile is too small for the machines that follow",
        ("sorted(needs, reverse=True)", "sorted(needs)"),
    ),
    "all-ports-down": Way(
        "you gave all {ports} ports of a lower switch to nodes: some have to go up, one for every {ratio} nodes",
        ("    down = ratio * up", "    down = ports"),
    ),
    "ratio-of-ports": Way(
        "you sent 1 port in {ratio} up: {ratio} go down for each that goes up, so it is 1 in {ratio} + 1",
        ("up = ports // (ratio + 1)", "up = ports // max(ratio, 2)"),
    ),
    "upper-as-lower": Way(
        "you counted upper switches by nodes: their ports are filled by the links that come up, {up} from each lower switch",
        ("math.ceil(lower * up / ports)", "math.ceil(nodes / ports)"),
    ),
    "whole-interval": Way(
        "you let the checkpoint take the whole {every} s: it may take {share:.0%} of that, as the GPUs wait meanwhile",
        ("every_s * share", "every_s"),
    ),
    "gib-as-gb": Way(
        "you took {gib} GiB for {gib} GB: a GiB has 1,073,741,824 bytes, but targets are given in 10⁹ bytes",
        ("gib * 2**30", "gib * 10**9"),
    ),
    "too-few-targets": Way(
        "{osts} targets cannot write that in time: return None, and make another decision (fewer bytes, more time)",
        ("if count <= osts else None", ""),
    ),
    "stripe-of-the-file": Way(
        "your stripes hold bytes of two ranks, which then wait for each other's locks: each rank's part, {part} MiB, has to be "
        "a multiple of the stripe",
        ("part = gib * 1024 // ranks", "part = gib * 1024"),
    ),
    "turned-round": Way(
        "you sent {name} to the wrong scheduler: Kubernetes keeps services alive that run for ever; Slurm queues jobs that end",
        ('"kubernetes" if runs == "for ever" else "slurm"', '"slurm" if runs == "for ever" else "kubernetes"'),
    ),
}  # fmt: skip
PUZZLES = (1, 2, 3, 4)
GROUPS = Passthrough(
    ((1, "01:00.0", cases.GRAPHICS), (1, "01:00.1", cases.SOUND),
     (13, "02:00.0", cases.GRAPHICS), (13, "02:00.1", cases.SOUND)),
    "02:00.0", frozenset({"01:00.0"}),
)  # fmt: skip  # two groups of which one number begins with the other
OTHER_GROUP = replace(GROUPS, gpu="01:00.0", host_needs=frozenset({"02:00.0"}))
MACHINES = [[1] * 33, [24, 24, 24], [48]]  # more of 1 GiB than the scheduler takes; as many as fit
NETWORKS = [Network(52, 40, 2), Network(400, 40, 1), Network(10, 36, 3)]  # full switches, and one that is nearly empty
CHECKPOINTS = [Checkpoint(1024, 64, 600, 0.05, 2.0, osts) for osts in (64, 19)]  # 18.3 targets: all of 19

WORKLOADS: dict[str, dict[str, object]] = {  # the first need decides, whatever the others are
    "a notebook server that a queue assigns": {"runs": "for ever", "starts": "by itself", "shares": "by queue"},
    "a nightly job on nodes that come and go": {"runs": "to its end", "starts": "by itself", "shares": "by autoscaling"},
}


def judge(part: Part) -> None:
    """Judge the five functions, one after the other."""
    vfio, machines = part.function("to_vfio"), part.function("gpus_needed")
    network, stripes, scheduler = part.function("switches"), part.function("stripes"), part.function("scheduler")
    passed = [case for puzzle in PUZZLES for case in cases.make_passthrough(puzzle)]
    part.compare([_vfio(part, vfio, case) for case in (*passed, GROUPS, OTHER_GROUP)])
    part.compare([_machines(part, machines, needs) for needs in (*map(cases.make_machines, range(1, 13)), *MACHINES)])
    networks = [case for puzzle in PUZZLES for case in cases.make_networks(puzzle)]
    part.compare([_network(part, network, case) for case in networks + NETWORKS])
    checkpoints = [case for puzzle in PUZZLES for case in cases.make_checkpoints(puzzle)]
    part.compare([_stripes(part, stripes, case) for case in checkpoints + CHECKPOINTS])
    part.compare([_scheduler(part, scheduler, *workload) for workload in (cases.WORKLOADS | WORKLOADS).items()])
    part.note(f"right for the cases of {len(PUZZLES)} puzzles")


def _vfio(part: Part, function: Callable[..., Any], case: Passthrough) -> Case:
    name = f"the GPU at {case.gpu}"
    own_group = next(group for group, address, _ in case.devices if address == case.gpu)
    group = [(address, kind) for number, address, kind in case.devices if number == own_group]
    right, together = case.right(), sorted(address for address, kind in group if kind != cases.BRIDGE)
    is_refused = bool(case.host_needs & set(together))
    ways = {
        "gpu-alone": [case.gpu],
        "bridges-too": [] if is_refused else sorted(address for address, _ in group),
        "same-slot": sorted(
            address for _, address, kind in case.devices if address[:5] == case.gpu[:5] and kind != cases.BRIDGE
        ),
        "host-loses-it": together,
    }
    answer = part.call(function, case.listing, case.gpu, set(case.host_needs), case=name)
    return Case(name, answer, right, ways, {"gpu": case.gpu, "right": ", ".join(right)})


def _machines(part: Part, function: Callable[..., Any], needs: list[int]) -> Case:
    profiles, right = cases.PROFILES, cases.gpus_needed(needs, cases.PROFILES)
    own_profiles = [min(size for size in profiles if size >= need) for need in needs]
    ways = {
        "memory-summed": math.ceil(sum(needs) / max(profiles)),
        "no-sharing": sum(math.ceil(own_profiles.count(size) / profiles[size]) for size in set(own_profiles)),
        "smallest-first": _smallest_first(needs),
    }
    name = f"machines of {', '.join(map(str, needs))} GiB"
    answer = part.call(function, list(needs), dict(profiles), case=name)
    return Case(name, answer, right, ways, {"needs": sum(needs), "right": right})


def _smallest_first(needs: list[int]) -> int:
    remaining, count = sorted(needs), 0
    while remaining:
        remaining, count = remaining[cases.PROFILES[min(size for size in cases.PROFILES if size >= remaining[0])] :], count + 1
    return count


def _network(part: Part, function: Callable[..., Any], case: Network) -> Case:
    nodes, ports, ratio = case.nodes, case.ports, case.ratio
    up, wrong_up = ports // (ratio + 1), ports // max(ratio, 2)
    right = case.right()
    ways = {
        "all-ports-down": (math.ceil(nodes / ports), math.ceil(math.ceil(nodes / ports) * up / ports)),
        "ratio-of-ports": _two_levels(nodes, ports, ratio * wrong_up, wrong_up),
        "upper-as-lower": (right[0], math.ceil(nodes / ports)),
    }
    answer = part.call(function, nodes, ports, ratio, case=(name := f"{nodes} nodes, {ports} ports, {ratio}:1"))
    return Case(name, answer, right, ways, {"ports": ports, "ratio": ratio, "up": up})


def _two_levels(nodes: int, ports: int, down: int, up: int) -> tuple[int, int]:
    lower = math.ceil(nodes / down)
    return lower, math.ceil(lower * up / ports)


def _stripes(part: Part, function: Callable[..., Any], case: Checkpoint) -> Case:
    gib, ranks, every, share, speed, osts = case.gib, case.ranks, case.every_s, case.share, case.ost_gb_per_s, case.osts
    size = Checkpoint(gib, ranks, every, share, speed, 1 << 30).right() or (0, 0)

    def limit(count: int, mib: int) -> tuple[int, int] | None:
        return (count, mib) if count <= osts else None

    whole = gib * 1024
    ways = {
        "whole-interval": limit(math.ceil(gib * 2**30 / every / (speed * 1e9)), size[1]),
        "gib-as-gb": limit(math.ceil(gib / (every * share) / speed), size[1]),
        "too-few-targets": size,
        "stripe-of-the-file": limit(size[0], max(2**power for power in range(11) if whole % 2**power == 0)),
    }
    values = {"gib": gib, "every": every, "share": share, "osts": osts, "part": whole // ranks}
    name = f"{gib} GiB of {ranks} ranks every {every} s, {osts} targets"
    return Case(name, part.call(function, gib, ranks, every, share, speed, osts, case=name), case.right(), ways, values)


def _scheduler(part: Part, function: Callable[..., Any], name: str, needs: dict[str, object]) -> Case:
    right = cases.right_scheduler(needs)
    opposite = "slurm" if right == "kubernetes" else "kubernetes"
    return Case(name, part.call(function, **needs, case=name), right, {"turned-round": opposite}, {"name": name})
