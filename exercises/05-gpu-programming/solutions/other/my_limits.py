"""Another solution of 5.7: it cuts the time at each start and end, and finds the kernels that run between two cuts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from planted_traces import Device, Launch


def find_limit(launches: Sequence[Launch], device: Device) -> str:
    """Return the limit that takes the most time."""
    times: Counter[str] = Counter()
    cuts = sorted({launch.start_us for launch in launches} | {launch.end_us for launch in launches})
    for begin, end in pairwise(cuts):
        kernel = next((launch for launch in launches if launch.start_us <= begin and launch.end_us >= end), None)
        times[_name(kernel, device)] += end - begin
    return times.most_common(1)[0][0]


def _name(launch: Launch | None, device: Device) -> str:
    if launch is None:
        return "launches"
    seconds = (launch.end_us - launch.start_us) * 1e-6
    for_flops, for_bytes = launch.flops / (device.gflop_per_s * 1e9), launch.fetched_bytes / (device.gb_per_s * 1e9)
    if for_flops > for_bytes and 2 * for_flops >= seconds:
        return "arithmetic"
    if 2 * for_bytes >= seconds:
        return "access" if 2 * launch.asked_bytes < launch.fetched_bytes else "memory"
    return "latency" if launch.stalled >= 0.5 else "issue"
