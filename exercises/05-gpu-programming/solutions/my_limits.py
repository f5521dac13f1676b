"""A solution of 5.7: it finds the limit of each kernel from the shares of the roofs that it reaches, and weights it by time."""

from __future__ import annotations

from collections.abc import Sequence

from planted_traces import LIMITS, Device, Launch


def name_limit(launch: Launch, device: Device) -> str:
    """Return the limit of one kernel."""
    us = launch.end_us - launch.start_us
    memory = launch.fetched_bytes / us / 1e3 / device.gb_per_s
    arithmetic = launch.flops / us / 1e3 / device.gflop_per_s
    if max(memory, arithmetic) >= 0.5:
        if arithmetic > memory:
            return "arithmetic"
        return "memory" if launch.asked_bytes >= launch.fetched_bytes / 2 else "access"
    return "latency" if launch.stalled > 0.5 else "issue"


def find_limit(launches: Sequence[Launch], device: Device) -> str:
    """Return the limit that takes the most time."""
    times_us = dict.fromkeys(LIMITS, 0.0)
    busy_until = min(launch.start_us for launch in launches)
    for launch in sorted(launches, key=lambda launch: launch.start_us):
        times_us["launches"] += max(0.0, launch.start_us - busy_until)
        times_us[name_limit(launch, device)] += max(0.0, launch.end_us - max(launch.start_us, busy_until))
        busy_until = max(busy_until, launch.end_us)
    return max(times_us, key=times_us.__getitem__)
