"""Judge my_limits.py of 5.7: find_limit must name the planted limit of each trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpucourse.judge import Case, Part, Way

SEEDS = range(8)  # for each limit
WAYS = {
    "gaps-forgotten": Way(
        "the time in which no kernel runs is missing: a program whose GPU waits for launches most of the time is not limited "
        "by what its kernels do in between",
        (
            'times_us["launches"] += max(0.0, launch.start_us - busy_until)',
            'times_us["launches"] += 0.0',
        ),
    ),
    "by-number": Way(
        "you count kernels, but what matters is their time: thirty kernels of 5 µs take less time than one of 200 µs",
        (
            'times_us["launches"] += max(0.0, launch.start_us - busy_until)\n'
            "        times_us[name_limit(launch, device)] += max(0.0, launch.end_us - max(launch.start_us, busy_until))",
            "times_us[name_limit(launch, device)] += 1.0",
        ),
    ),
    "longest-alone": Way(
        "you look at the longest kernel, but several shorter ones with the same limit take more time together",
        (
            "times_us[name_limit(launch, device)] += max(0.0, launch.end_us - max(launch.start_us, busy_until))",
            "times_us[name_limit(launch, device)] = max(times_us[name_limit(launch, device)], launch.end_us - launch.start_us)",
        ),
    ),
    "overlap-twice": Way(
        "kernels in two streams run at the same time, and you add up their durations: count the time in which at least one "
        "of them runs",
        (
            "times_us[name_limit(launch, device)] += max(0.0, launch.end_us - max(launch.start_us, busy_until))",
            "times_us[name_limit(launch, device)] += launch.end_us - launch.start_us",
        ),
    ),
    "ridge-alone": Way(
        "you compare operations per byte with the ridge, so that every kernel is limited by a roof. A kernel that reaches a "
        "tenth of both roofs is limited by neither: divide by its time as well",
        ("if max(memory, arithmetic) >= 0.5:", "if max(memory, arithmetic) >= 0.0:"),
    ),
    "roofs-out-of-reach": Way(
        "no kernel comes near a roof in your count, but some do. Is a factor missing? 1 GB/s is 1,000 bytes per microsecond",
        ("us = launch.end_us - launch.start_us", "us = (launch.end_us - launch.start_us) * 1e3"),
    ),
    "asked-for-fetched": Way(
        "you count the bytes that threads asked for. Memory delivers whole sectors: a kernel with bad access keeps memory busy "
        "with fetched_bytes, although its threads use few of them",
        ("launch.fetched_bytes / us / 1e3", "launch.asked_bytes / us / 1e3"),
    ),
    "waste-unseen": Way(
        'you never return "access": compare the bytes that the threads asked for with those that memory delivered',
        ("launch.asked_bytes >= launch.fetched_bytes / 2", "launch.asked_bytes >= 0"),
    ),
    "stalls-unseen": Way(
        "of the kernels that are near no roof, some wait and some issue instructions all the time, such as those for indices: "
        "`stalled` tells the two apart",
        ("launch.stalled > 0.5", "launch.stalled > 0.0"),
    ),
}


def judge(part: Part) -> None:
    """Judge `find_limit` on traces with each planted limit."""
    import planted_traces  # shared files are on the path when a part is judged, but not when its ways are only listed

    find_limit = part.function("find_limit")
    cases = []
    for seed in SEEDS:
        for limit in planted_traces.LIMITS:
            trace = planted_traces.make_trace(limit, seed)
            name = f"a trace of {len(trace.launches)} kernels in {trace.length_us:,.0f} µs on a {trace.device.name}"
            answer = part.call(find_limit, list(trace.launches), trace.device, case=name)
            others = {way: classify(trace, **changes) for way, changes in CHANGES.items()}
            cases.append(Case(name, answer, limit, {way: other for way, other in others.items() if other != limit}))
    part.compare(cases)
    part.note(f"right for {len(cases)} traces on {len(planted_traces.DEVICES)} devices")


CHANGES: dict[str, dict[str, Any]] = {
    "gaps-forgotten": {"gaps": False},
    "by-number": {"gaps": False, "weigh": lambda _launch, _busy_until: 1.0},
    "longest-alone": {"longest": True, "weigh": lambda launch, _busy_until: launch.end_us - launch.start_us},
    "overlap-twice": {"weigh": lambda launch, _busy_until: launch.end_us - launch.start_us},
    "ridge-alone": {"near": 0.0},
    "roofs-out-of-reach": {"near": 500.0},
    "asked-for-fetched": {"bytes_of": "asked_bytes"},
    "waste-unseen": {"used": 0.0},
    "stalls-unseen": {"stalls": 0.0},
}


def classify(
    trace: Any,
    *,
    gaps: bool = True,
    weigh: Callable[[Any, float], float] = lambda launch, busy_until: max(
        0.0, launch.end_us - max(launch.start_us, busy_until)
    ),
    longest: bool = False,
    near: float = 0.5,
    bytes_of: str = "fetched_bytes",
    used: float = 0.5,
    stalls: float = 0.5,
) -> str:
    """Return the limit that takes the most time of a trace, by the right rule or, with one keyword, by one mistake."""
    times: dict[str, float] = {"launches": 0.0}
    busy_until = min(launch.start_us for launch in trace.launches)
    for launch in sorted(trace.launches, key=lambda launch: launch.start_us):
        bytes_per_us = 1e3 * trace.device.gb_per_s * (launch.end_us - launch.start_us)
        memory = getattr(launch, bytes_of) / bytes_per_us
        arithmetic = launch.flops / (1e3 * trace.device.gflop_per_s * (launch.end_us - launch.start_us))
        if max(memory, arithmetic) < near:
            limit = "latency" if launch.stalled > stalls else "issue"
        elif arithmetic > memory:
            limit = "arithmetic"
        else:
            limit = "memory" if launch.asked_bytes >= used * launch.fetched_bytes else "access"
        times["launches"] += max(0.0, launch.start_us - busy_until) if gaps else 0.0
        us = weigh(launch, busy_until)
        times[limit] = max(times.get(limit, 0.0), us) if longest else times.get(limit, 0.0) + us
        busy_until = max(busy_until, launch.end_us)
    return max(times, key=times.__getitem__)
