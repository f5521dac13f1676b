"""Make traces of training steps on a GPU in the format of PyTorch's profiler (Kineto), with faults planted in them.

No GPU is measured. A processor with three threads queues kernels and copies on three streams, each with a duration drawn by a
seeded generator. A kernel begins when it was launched, when its stream is free, and when the work that it needs has ended. All
times are whole microseconds. While the planter writes events, it also adds up the right answers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

NO_FAULT = "none"
FAULTS = ("sync in the loop", "pageable copy", "many small kernels", "unfused optimizer", "exposed all-reduce")
COMPUTE, COPY, COMMUNICATION = 7, 13, 20  # streams
MAIN, AUTOGRAD, LOADER = 1000, 1001, 1002  # threads
LAUNCH_US, PYTHON_US = 5, 3


@dataclass
class Planter:
    """A training run under construction: its `events`, and what is right for them.

    `busy` contains the microseconds in which the GPU does anything, `exchanging` those in which only an all-reduce runs.
    `range_us` has the microseconds of work by the innermost range that contains its launch.
    """

    seed: int
    events: list[dict[str, Any]] = field(default_factory=list)
    clock: dict[int, int] = field(default_factory=lambda: dict.fromkeys((MAIN, AUTOGRAD, LOADER), 1_000_000))
    free: dict[int, int] = field(default_factory=lambda: dict.fromkeys((COMPUTE, COPY, COMMUNICATION), 0))
    computing: set[int] = field(default_factory=set)
    exchanging: set[int] = field(default_factory=set)
    range_us: dict[str, int] = field(default_factory=dict)
    ranges: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: {MAIN: [], AUTOGRAD: [], LOADER: []})
    launches: list[tuple[int, str]] = field(
        default_factory=list
    )  # for each piece of work: its start, the call before its launch

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.last_call = dict.fromkeys(self.clock, "")

    def open(self, name: str, thread: int = MAIN) -> None:
        """Begin a range on a thread."""
        self.clock[thread] += 1
        self.ranges[thread].append((name, self.clock[thread]))

    def close(self, thread: int = MAIN) -> None:
        """End the innermost range of a thread."""
        name, start = self.ranges[thread].pop()
        self.clock[thread] += 1
        self._write("user_annotation", name, thread, start, self.clock[thread] - start)

    def call(self, name: str, duration: int, thread: int, **args: object) -> None:
        """Write a call of the CUDA runtime."""
        self._write("cuda_runtime", name, thread, self.clock[thread], duration, **args)
        self.clock[thread] += duration + PYTHON_US
        self.last_call[thread] = name

    def launch(
        self, name: str, duration: int, *, stream: int = COMPUTE, thread: int = MAIN, after: int = 0, kind: str = "kernel",
        blocks: bool = False, python_us: int = 0,
    ) -> int:  # fmt: skip
        """Write a launch and its work on the GPU. Return the time at which the work ends. A blocking call ends with its work.

        `python_us` is what Python needs before the launch.
        """
        self.clock[thread] += python_us
        call = "cudaMemcpyAsync" if kind == "gpu_memcpy" else "cudaLaunchKernel"
        begin, number, before = self.clock[thread], len(self.launches) + 1, self.last_call[thread]
        start = max(begin + LAUNCH_US, self.free[stream] + 1, after)
        self.free[stream] = end = start + duration
        self.call(call, end - begin if blocks else LAUNCH_US, thread, correlation=number)
        args = {"correlation": number, "stream": stream, "device": 0}
        self._write(kind, name, stream, start, duration, pid=0, **args)
        (self.exchanging if stream == COMMUNICATION else self.computing).update(range(start, end))
        place = self.ranges[thread][-1][0] if self.ranges[thread] else ""
        self.range_us[place] = self.range_us.get(place, 0) + duration
        self.launches.append((start, before))
        return end

    def synchronize(self, thread: int = MAIN) -> None:
        """Wait on a thread until the compute stream is empty, as loss.item() does."""
        self.call("cudaStreamSynchronize", max(2, self.free[COMPUTE] + 2 - self.clock[thread]), thread)

    def draw(self, low: int, high: int) -> int:
        """Return a whole number of microseconds between the two."""
        return self.random.randint(low, high)

    def _write(self, kind: str, name: str, thread: int, start: int, duration: int, pid: int = 42, **args: object) -> None:
        self.events.append(
            {"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": thread, "ts": start, "dur": duration, "args": args}
        )

    def answers(self) -> dict[str, Any]:
        """Return the right answers for the events."""
        busy = sorted(self.computing | self.exchanging)
        gaps = [(after - before - 1, after) for before, after in pairwise(busy) if after > before + 1]
        longest_us, end = max(gaps, default=(0, 0))
        return {
            "busy_percent": 100 * len(busy) / (busy[-1] + 1 - busy[0]),
            "exposed_us": len(self.exchanging - self.computing),
            "gap_us": longest_us,
            "gap_call": next((call for start, call in self.launches if start == end), ""),
            "range_us": self.range_us,
            "span_us": busy[-1] + 1 - busy[0],
        }


def plant(fault: str, seed: int, steps: int = 4) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a trace with one of FAULTS or NO_FAULT, and the right answers about it.

    Every trace has harmless signs of the other faults: one wait, small pageable copies, some short kernels, and an all-reduce
    of the first layer that nothing hides.
    """
    planter = Planter(seed)
    sizes = Sizes(planter)
    pause = planter.draw(2, steps - 1), planter.draw(0, sizes.layers - 1)  # when Python collects its garbage
    planter.launch("fill_kernel", 4)  # before any range
    for step in range(steps):
        planter.open(f"step {step}")
        batch = _load(planter, fault)
        planter.open("forward")
        for layer in range(sizes.layers):
            planter.open(f"layer {layer}")
            planter.clock[MAIN] += planter.draw(60, 90) if (step, layer) == pause else 0
            _compute(planter, fault, sizes, MAIN, batch)
            planter.close()
        planter.close()
        reduced = _go_back(planter, fault, sizes)
        _update(planter, fault, sizes, reduced)
        if fault == FAULTS[0] or step == 1:
            planter.synchronize()
        if fault == FAULTS[0]:
            planter.clock[MAIN] += planter.draw(900, 1400)  # Python writes the loss to a file
        planter.close()
    answers = planter.answers()
    add_marks(planter)
    planter.random.shuffle(planter.events)  # a profiler does not sort them
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "planted, no GPU"}],
        "traceEvents": planter.events,
    }, answers


class Sizes:
    """The sizes of the model of one trace."""

    def __init__(self, planter: Planter) -> None:
        self.layers, self.per_layer = planter.draw(3, 5), planter.draw(5, 7)
        self.kernel_us, self.bucket_us = planter.draw(40, 60), planter.draw(50, 80)


def _load(planter: Planter, fault: str) -> int:
    """Copy a batch. Return the time at which the copy ends."""
    planter.open("data")
    planter.launch("Memcpy HtoD (Pageable -> Device)", planter.draw(2, 4), kind="gpu_memcpy")  # the labels
    if fault == FAULTS[1]:
        end = planter.launch("Memcpy HtoD (Pageable -> Device)", planter.draw(900, 1400), kind="gpu_memcpy", blocks=True)
    else:
        planter.clock[LOADER] = max(planter.clock[LOADER], planter.clock[MAIN])
        planter.open("prefetch", LOADER)
        end = planter.launch(
            "Memcpy HtoD (Pinned -> Device)", planter.draw(80, 120), stream=COPY, thread=LOADER, kind="gpu_memcpy"
        )
        planter.close(LOADER)
    planter.close()
    return end


def _compute(planter: Planter, fault: str, sizes: Sizes, thread: int, after: int = 0) -> int:
    """Launch the kernels of a layer, forward or backward. Return the time at which they end."""
    if fault == FAULTS[2]:
        for _ in range(planter.draw(30, 40)):
            end = planter.launch("elementwise_kernel", planter.draw(2, 4), thread=thread, after=after, python_us=12)
        return end
    planter.launch("layer_norm_kernel", planter.draw(3, 6), thread=thread, after=after)
    for _ in range(sizes.per_layer):
        end = planter.launch("gemm_kernel", planter.draw(sizes.kernel_us, 2 * sizes.kernel_us), thread=thread, after=after)
    return end


def _go_back(planter: Planter, fault: str, sizes: Sizes) -> int:
    """Launch the backward pass on its own thread, with an all-reduce for each layer. Return the time at which all end."""
    planter.clock[AUTOGRAD] = max(planter.clock[AUTOGRAD], planter.clock[MAIN])
    planter.open("backward", AUTOGRAD)
    buckets = []
    for layer in reversed(range(sizes.layers)):
        planter.open(f"layer {layer} backward", AUTOGRAD)
        end = _compute(planter, fault, sizes, AUTOGRAD)
        planter.close(AUTOGRAD)
        if fault != FAULTS[4]:
            buckets.append(_all_reduce(planter, planter.draw(sizes.bucket_us, sizes.bucket_us + 20), end))
    if fault == FAULTS[4]:  # all gradients together, once the last is there
        buckets.append(_all_reduce(planter, planter.draw(1200, 1800), end))
    planter.close(AUTOGRAD)
    planter.clock[MAIN] = planter.clock[AUTOGRAD] + PYTHON_US
    return max(buckets)


def _all_reduce(planter: Planter, duration: int, after: int) -> int:
    """Launch an all-reduce from the thread of the backward pass. Return the time at which it ends."""
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    return planter.launch(name, duration, stream=COMMUNICATION, thread=AUTOGRAD, after=after)


def _update(planter: Planter, fault: str, sizes: Sizes, reduced: int) -> None:
    """Clip the gradients, and update the parameters: with one kernel, or with some for each parameter."""
    planter.open("optimizer")
    for _ in range(4):
        planter.launch("multi_tensor_clip_kernel", planter.draw(3, 6), after=reduced)
    if fault == FAULTS[3]:
        for _ in range(50 * sizes.layers):
            planter.launch("elementwise_kernel", planter.draw(2, 4), python_us=24)
    else:
        planter.launch("fused_adamw_kernel", planter.draw(60, 100))
    planter.close()


def add_marks(planter: Planter) -> None:
    """Add the other events of a profiler: names of processes, arrows from launches to work, operations, ranges on the GPU."""
    work = [event for event in planter.events if event["cat"] in ("kernel", "gpu_memcpy")]
    calls = {event["args"].get("correlation"): event for event in planter.events if event["cat"] == "cuda_runtime"}
    for event in work:
        call = calls[event["args"]["correlation"]]
        span = {"ts": call["ts"] - 2, "dur": call["dur"] + 3}
        planter.events.append(
            call | span | {"cat": "cpu_op", "name": f"aten::{event['name'].split('_')[0].lower()}", "args": {}}
        )
        for phase, end in (("s", call), ("f", event)):
            arrow = {"ph": phase, "cat": "ac2g", "name": "ac2g", "id": event["args"]["correlation"], "pid": end["pid"]}
            planter.events.append(arrow | {"tid": end["tid"], "ts": end["ts"]})
    start, end = min(event["ts"] for event in work), max(event["ts"] + event["dur"] for event in work)
    planter.events.append({"ph": "X", "cat": "gpu_user_annotation", "name": "training", "pid": 0, "tid": COMPUTE, "ts": start,
                           "dur": end - start, "args": {}})  # fmt: skip
    planter.events += [
        {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in ((0, "GPU 0"), (42, "python"))
    ]
