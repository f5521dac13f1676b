"""Judge my_trace.py of 5.11 on small traces and on traces with planted faults, whose right answers the planter returns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from traces import AUTOGRAD, COMMUNICATION, FAULTS, MAIN, NO_FAULT, Planter, add_marks, plant

from gpucourse.judge import Case, Part, Way

Event = dict[str, Any]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
WAYS = {
    "durations-added": Way(
        "the durations of all work are added, but streams work at the same time: two kernels of 1 s that overlap keep the GPU "
        "busy for 1 s. Merge their intervals first",
        (
            "    return 100 * length(spans) / (spans[-1][1] - spans[0][0])",
            '    return 100 * sum(event["dur"] for event in select(events, *WORK)) / (spans[-1][1] - spans[0][0])',
        ),
    ),
    "annotations-counted": Way(
        "events of the category gpu_user_annotation are counted as work: these are ranges that the profiler draws on the GPU's "
        "tracks, and nothing runs in them by itself",
        (
            "    spans = unite(select(events, *WORK))\n    return 100",
            '    spans = unite(select(events, "gpu_user_annotation", *WORK))\n    return 100',
        ),
    ),
    "copies-not-counted": Way(
        "only kernels are counted, but a copy (gpu_memcpy) is work of the GPU, too",
        (
            "    spans = unite(select(events, *WORK))\n    return 100",
            '    spans = unite(select(events, "kernel"))\n    return 100',
        ),
    ),
    "all-communication": Way(
        "the whole time of the communication is counted, even while other streams compute: only what nothing hides makes a "
        "step longer",
        (
            "    work = select(events, *WORK)\n    return exposed(",
            "    work = select(events, *WORK)\n"
            "    return length(unite([event for event in work if is_communication(event)])) or exposed(",
        ),
    ),
    "hidden-at-a-touch": Way(
        "a communication that overlaps with other work for a part of its time is counted as hidden altogether",
        (
            "    return length(unite(events + hiding)) - length(unite(hiding))",
            '    return sum(item["dur"] for item in events if not any(other["ts"] < item["ts"] + item["dur"] and item["ts"] < '
            'other["ts"] + other["dur"] for other in hiding))',
        ),
    ),
    "launch-for-cause": Way(
        "{given} is the launch that ended the gap. It came late: what did its thread do before it?",
        ('return gap, before["name"] if before else ""', 'return gap, _["name"] if before else ""'),
    ),
    "call-of-any-thread": Way(
        "{given} is the last call before the launch on any thread, but here no other thread blocks the one that launches: take "
        "the last call on that thread",
        (
            'last.get(call["tid"])\n        last[call["tid"]] = call',
            "last.get(0)\n        last[0] = call",
        ),
    ),
    "gap-of-a-stream": Way(
        "a gap in one stream is not a gap of the GPU while another stream works: merge the intervals of all streams first",
        (
            "    gap, _, before = max(find_causes(events), key=lambda item: item[0], default=(0.0, {}, None))",
            '    gap, _, before = max((cause for stream in {event["tid"] for event in select(events, *WORK)} for cause in '
            'find_causes([event for event in events if event.get("cat") not in WORK or event["tid"] == stream])), '
            "key=lambda item: item[0], default=(0.0, {}, None))",
        ),
    ),
    "range-of-the-time": Way(
        "work is assigned to the range in which it runs, but it runs later than the code that launched it: the processor is "
        "ahead. Follow the correlation from the work to its launch",
        ('launches[event["args"]["correlation"]])] +=', 'launches[event["args"]["correlation"]] | {"ts": event["ts"]})] +='),
    ),
    "range-of-any-thread": Way(
        "work is assigned to a range that is open at the same time on another thread: a range belongs to one thread",
        ('        and item["tid"] == launch["tid"]\n', ""),
    ),
    "outermost-range": Way(
        "of several nested ranges you use the outermost, which contains everything: the innermost names the code",
        ("    return str(min(around,", "    return str(max(around,"),
    ),
    "a-sign-for-the-fault": Way(
        "it says {given} of a trace in which {fault} costs far more: every trace has symptoms of several faults. Compute for "
        "each how much time would be saved without it, and compare",
        (
            "    fault, cost = costs.most_common(1)[0]\n",
            '    fault, cost = next((name for name in ("pageable copy", "sync in the loop") if costs[name]), "none"), 1e9\n',
        ),
    ),
    "place-not-used": Way(
        "it says {given} instead of {fault}: both leave the GPU idle between launches that come too slowly. Which range "
        "launched the work after each gap?",
        ('"unfused optimizer" if find_range(ranges, launch) == "optimizer" else "many small kernels"', '"many small kernels"'),
    ),
    "always-a-fault": Way(
        "it says {given} of a trace in which no fault costs a tenth of the time: the largest of five small costs is not a "
        "fault",
        ("if cost > (end - start) / 10 else", "if cost > 0 else"),
    ),
}  # fmt: skip


def build(*, streams: int = 1, threads: int = 1, nested: bool = False) -> tuple[list[Event], dict[str, Any]]:
    """Return the events of a small trace, and the right answers."""
    planter = Planter(1)
    planter.call("cudaMalloc", 300, MAIN)  # time before the first work is not a gap
    planter.open("outer")
    first = planter.launch("gemm_kernel", 40)
    if nested:
        planter.open("inner")
    planter.launch("gemm_kernel", 30)
    if nested:
        planter.close()
    if streams > 1:
        planter.launch("ncclDevKernel_AllReduce", 60, stream=COMMUNICATION, after=first + 10)
        planter.launch("Memcpy HtoD (Pinned -> Device)", 25, stream=13, kind="gpu_memcpy", after=first + 80)
    if threads > 1:
        planter.clock[AUTOGRAD] = planter.clock[MAIN]
        planter.open("backward", AUTOGRAD)
        planter.launch("gemm_kernel", 20, thread=AUTOGRAD)
        planter.clock[AUTOGRAD] += 150
        planter.call("cudaEventRecord", 2, AUTOGRAD)
    planter.synchronize()
    planter.clock[MAIN] += 100
    if threads > 1:
        planter.call("cudaMalloc", 3, MAIN)
        planter.clock[AUTOGRAD] = planter.clock[MAIN] - 2
        planter.call("cudaEventRecord", 1, AUTOGRAD)
        planter.close(AUTOGRAD)
    planter.launch("gemm_kernel", 15)
    planter.close()
    answers = planter.answers()
    add_marks(planter)
    return planter.events, answers


SMALL_TRACES = {
    f"{streams} stream{'s' * (streams > 1)}, {threads} thread{'s' * (threads > 1)}{', nested ranges' * nested}": (
        {"streams": streams, "threads": threads, "nested ranges": nested, "planted": NO_FAULT},
        build(streams=streams, threads=threads, nested=nested),
    )
    for streams, threads, nested in ((1, 1, False), (2, 1, False), (1, 2, False), (1, 1, True), (2, 2, True))
}
SEEDS = {**dict.fromkeys(FAULTS, (1, 2)), NO_FAULT: (1, 2)}


def select(events: list[Event], *categories: str) -> list[Event]:
    return sorted((event for event in events if event.get("cat") in categories), key=lambda event: event["ts"])


def unite(events: list[Event]) -> list[list[float]]:
    """Return the intervals in which any of the events runs."""
    spans: list[list[float]] = []
    for event in sorted(events, key=lambda event: event["ts"]):
        if spans and event["ts"] <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], event["ts"] + event["dur"])
        else:
            spans.append([event["ts"], event["ts"] + event["dur"]])
    return spans


def length(spans: list[list[float]]) -> float:
    return sum(end - start for start, end in spans)


def find_wrong_busy(*categories: str, adds: bool = False) -> Callable[[list[Event]], float]:
    """Return a function that computes the busy share from work of these categories.

    If `adds`, it adds up durations, although pieces of work overlap.
    """

    def find(events: list[Event]) -> float:
        work = select(events, *categories)
        spans = unite(work)
        return 100 * (sum(event["dur"] for event in work) if adds else length(spans)) / (spans[-1][1] - spans[0][0])

    return find


def list_communication(events: list[Event]) -> list[Event]:
    return [event for event in select(events, *WORK) if event["name"].startswith("nccl")]


def find_exposed_at_a_touch(events: list[Event]) -> float:
    spans = unite([event for event in select(events, *WORK) if not event["name"].startswith("nccl")])
    return sum(
        event["dur"] for event in list_communication(events)
        if not any(start < event["ts"] + event["dur"] and event["ts"] < end for start, end in spans)
    )  # fmt: skip


def find_wrong_gap(way: str) -> Callable[[list[Event]], list[Any]]:
    """Return a function that finds the longest gap with the error `way`."""

    def find(events: list[Event]) -> list[Any]:
        calls, work = select(events, "cuda_runtime"), select(events, *WORK)
        launches = {call["args"].get("correlation"): call for call in calls}
        tracks = [[event for event in work if event["tid"] == stream] for stream in {event["tid"] for event in work}]
        longest_us, name = 0.0, ""
        for track in tracks if way == "gap-of-a-stream" else [work]:
            spans = unite(track)
            first = {event["ts"]: event for event in reversed(track)}
            for (_, end), (start, _) in pairwise(spans):
                if start - end > longest_us:
                    launch = launches[first[start]["args"]["correlation"]]
                    before = [call for call in calls if call["ts"] < launch["ts"]
                              and (way == "call-of-any-thread" or call["tid"] == launch["tid"])]  # fmt: skip
                    longest_us, name = start - end, before[-1]["name"] if before else ""
                    name = launch["name"] if way == "launch-for-cause" else name
        return [longest_us, name]

    return find


def find_wrong_ranges(way: str) -> Callable[[list[Event]], dict[str, float]]:
    """Return a function that sums the work of ranges with the error `way`."""

    def find(events: list[Event]) -> dict[str, float]:
        launches = {call["args"].get("correlation"): call for call in select(events, "cuda_runtime")}
        ranges, sums = select(events, "user_annotation"), dict[str, float]()
        for event in select(events, *WORK):
            launch = launches[event["args"]["correlation"]]
            moment = event["ts"] if way == "range-of-the-time" else launch["ts"]
            around = [item for item in ranges if item["ts"] <= moment < item["ts"] + item["dur"]
                      and (way == "range-of-any-thread" or item["tid"] == launch["tid"])]  # fmt: skip
            choose = max if way == "outermost-range" else min
            name = choose(around, key=lambda item: item["dur"])["name"] if around else ""
            sums[name] = sums.get(name, 0) + event["dur"]
        return sums

    return find


FIGURES: tuple[tuple[str, Callable[[dict[str, Any]], Any], dict[str, Callable[[list[Event]], Any]]], ...] = (
    ("busy_percent", lambda answers: answers["busy_percent"], {
        "durations-added": find_wrong_busy(*WORK, adds=True),
        "annotations-counted": find_wrong_busy(*WORK, "gpu_user_annotation"),
        "copies-not-counted": find_wrong_busy("kernel"),
    }),
    ("exposed_us", lambda answers: answers["exposed_us"], {
        "all-communication": lambda events: length(unite(list_communication(events))),
        "hidden-at-a-touch": find_exposed_at_a_touch,
    }),
    ("longest_gap", lambda answers: [answers["gap_us"], answers["gap_call"]], {
        way: find_wrong_gap(way) for way in ("launch-for-cause", "call-of-any-thread", "gap-of-a-stream")
    }),
    ("range_us", lambda answers: answers["range_us"], {
        way: find_wrong_ranges(way) for way in ("range-of-the-time", "range-of-any-thread", "outermost-range")
    }),
)  # fmt: skip


def judge(part: Part) -> None:
    """Judge one function after the other, each on small traces first."""
    planted_traces = {
        f"a training with {fault if fault != NO_FAULT else 'no fault'}, seed {seed}": (fault, *plant(fault, seed))
        for fault, seeds in SEEDS.items() for seed in seeds
    }  # fmt: skip
    inputs = dict(SMALL_TRACES) | {
        name: ({"streams": 3, "threads": 3, "nested ranges": True, "planted": fault}, (trace["traceEvents"], answers))
        for name, (fault, trace, answers) in planted_traces.items()
    }
    for name, right, ways in FIGURES:
        function = part.function(name)
        cases = []
        for title, (knobs, (events, answers)) in inputs.items():
            answer = part.call(function, [dict(event) for event in events], case=title)
            answer_text = answer[1] if isinstance(answer, (tuple, list)) and len(answer) > 1 else answer
            cases.append(Case(title, answer, right(answers), {way: find(events) for way, find in ways.items()},
                              {"given": answer_text or "nothing"}, knobs))  # fmt: skip
        part.compare(cases, tolerance=1e-6)
    judge_names(part, planted_traces)
    part.note(f"right for {len(SMALL_TRACES)} small traces and {len(planted_traces)} of a training, with the fault of each")


def judge_names(part: Part, planted_traces: dict[str, tuple[str, dict[str, Any], dict[str, Any]]]) -> None:
    """Judge the names of the faults. Raises Verdict."""
    function = part.function("name_fault")
    mistakes = []
    for title, (fault, trace, _) in planted_traces.items():
        answer = part.call(function, [dict(event) for event in trace["traceEvents"]], case=title)
        if answer not in (*FAULTS, NO_FAULT):
            part.compare([Case(title, answer, fault)])
        if answer != fault:
            mistakes.append((title, fault, answer))
    if not mistakes:
        return
    if all(fault == NO_FAULT for _, fault, _ in mistakes):
        raise part.wrong("always-a-fault", mistakes[0][0], given=mistakes[0][2])
    title, fault, answer = next(item for item in mistakes if item[1] != NO_FAULT)
    if all({fault, answer} == {FAULTS[2], FAULTS[3]} for _, fault, answer in mistakes):
        raise part.wrong("place-not-used", title, given=answer, fault=fault)
    if answer != NO_FAULT:
        raise part.wrong("a-sign-for-the-fault", title, given=answer, fault=fault)
    part.compare([Case(title, answer, fault)])
