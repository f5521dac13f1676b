"""Traces of programs on a GPU, with a planted limit: what each kernel did, and when. The kernels' names are random."""

from __future__ import annotations

import random
from dataclasses import dataclass

LIMITS = ("launches", "memory", "access", "arithmetic", "latency", "issue")
NAMES = ("gemm_128x64", "softmax_rows", "copy_kernel", "vectorized_add", "conv_fprop", "reduce_axis", "index_select")


@dataclass(frozen=True)
class Device:
    """The two roofs of a device."""

    name: str
    gflop_per_s: float
    gb_per_s: float


@dataclass(frozen=True)
class Launch:
    """One kernel of a trace.

    start_us, end_us: microseconds since the trace began.
    flops: floating-point operations that it performed.
    asked_bytes: bytes that its threads asked memory for and used.
    fetched_bytes: bytes that memory delivered for them, in whole sectors.
    stalled: the share of the clocks, 0 to 1, in which none of its warps could issue an instruction.
    """

    name: str
    start_us: float
    end_us: float
    flops: float
    asked_bytes: float
    fetched_bytes: float
    stalled: float


@dataclass(frozen=True)
class Trace:
    """A trace and its planted limit. `launches` are in no particular order, as profilers write them."""

    device: Device
    launches: tuple[Launch, ...]
    limit: str

    @property
    def length_us(self) -> float:
        """Return the microseconds from the start of the first kernel to the end of the last."""
        return max(launch.end_us for launch in self.launches) - min(launch.start_us for launch in self.launches)


DEVICES = (Device("T4", 8100, 320), Device("L4", 30300, 300), Device("H100", 66900, 3350))


def make_trace(limit: str, seed: int) -> Trace:
    """Return a trace of about a millisecond in which `limit` takes 42 to 48 % of the time, and two others share the remainder.

    The limit's kernels are neither the most nor the longest: another limit has more of them, and the third has a longer one.
    Kernels that wait for latency run in two streams, so that two of them overlap; counted twice, they would take the most time.
    """
    dice = random.Random(f"{limit}-{seed}")
    device = dice.choice(DEVICES)
    other_limits = sorted(dice.sample([other for other in LIMITS if other != limit], 2), key=lambda other: other != "latency")
    share, minor_share = dice.uniform(0.42, 0.48), dice.uniform(0.3, 0.34)
    times_us = {limit: 1000 * share, other_limits[0]: 1000 * minor_share, other_limits[1]: 1000 * (1 - share - minor_share)}
    counts = {limit: dice.randint(6, 8), other_limits[0]: dice.randint(20, 30), other_limits[1]: 1}
    pieces = [(kind, us / counts[kind]) for kind, us in times_us.items() if kind != "launches" for _ in range(counts[kind])]
    dice.shuffle(pieces)
    gap_us = times_us.get("launches", 20.0) / (len(pieces) - 1)
    launches: list[Launch] = []
    clock_us = dice.uniform(0, 50)
    for kind, us in pieces:
        launches += _make_launches(kind, clock_us, us, device, dice)
        clock_us += us + gap_us
    dice.shuffle(launches)
    return Trace(device, tuple(launches), limit)


def _make_launches(kind: str, start_us: float, us: float, device: Device, dice: random.Random) -> list[Launch]:
    """Return one kernel with this limit or, if it is latency, two that overlap for nearly all of the time."""
    memory, arithmetic = {
        "memory": (dice.uniform(0.75, 0.95), dice.uniform(0.01, 0.3)),
        "access": (dice.uniform(0.75, 0.95), dice.uniform(0.01, 0.1)),
        "arithmetic": (dice.uniform(0.05, 0.4), dice.uniform(0.65, 0.9)),
        "latency": (dice.uniform(0.02, 0.15), dice.uniform(0.01, 0.15)),
        "issue": (dice.uniform(0.02, 0.3), dice.uniform(0.02, 0.25)),
    }[kind]
    stalled = dice.uniform(0.05, 0.3) if kind in {"issue", "arithmetic"} else dice.uniform(0.7, 0.97)
    fetched_bytes = memory * device.gb_per_s * 1e3 * us  # 1 GB/s is 1,000 bytes per microsecond
    used_share = dice.uniform(0.12, 0.4) if kind == "access" else dice.uniform(0.8, 1.0)
    flops = arithmetic * device.gflop_per_s * 1e3 * us
    kernel = Launch(dice.choice(NAMES), start_us, start_us + us, flops, used_share * fetched_bytes, fetched_bytes, stalled)
    if kind != "latency":
        return [kernel]
    return [
        kernel,
        Launch(
            dice.choice(NAMES), start_us + 0.02 * us, start_us + us, flops, used_share * fetched_bytes, fetched_bytes, stalled
        ),
    ]
