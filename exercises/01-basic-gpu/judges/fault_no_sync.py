"""Judge a repaired copy: the measurement must wait for the device."""

from __future__ import annotations

import time

from gpucourse.judge import Part, Way

WAYS = {"still": Way("a call that queues 10 ms of work is measured as {measured} microseconds")}
REPAIRS = (
    (
        """            begun = time.perf_counter()
            call()
            seconds""",
        """            if device.type == "cuda":
                torch.cuda.synchronize()
            begun = time.perf_counter()
            call()
            if device.type == "cuda":
                torch.cuda.synchronize()
            seconds""",
    ),
)
WORK_S, CALL_S = 0.010, 1e-5  # on the device, and until a call returns


class Queue:
    """A GPU with its own clock. Work is queued first and done later."""

    def __init__(self) -> None:
        self.now = self.done_at = 0.0

    def call(self) -> None:
        """Queue 10 ms of work, and return after 10 microseconds."""
        self.done_at = max(self.done_at, self.now) + WORK_S
        self.now += CALL_S

    def synchronize(self, _device: object = None) -> None:
        """Wait until everything is done."""
        self.now = max(self.now, self.done_at)


def judge(part: Part) -> None:
    """Check that each of five calls takes 10 ms, the time of the work, not 10 microseconds, the time of queueing it."""
    import torch

    queue = Queue()

    class Event:
        """A mark in the queue. Its time is when the work before it is done."""

        def __init__(self, **_: object) -> None:
            self.at = 0.0

        def record(self, *_: object) -> None:
            self.at = max(queue.now, queue.done_at)

        def synchronize(self) -> None:
            queue.now = max(queue.now, self.at)

        def elapsed_time(self, end: Event) -> float:
            if queue.now < end.at:
                raise RuntimeError("Both events must be completed before calculating elapsed time.")
            return 1e3 * (end.at - self.at)

    bench = part.module
    time.perf_counter = time.monotonic = time.time = lambda: queue.now
    torch.cuda.Event, torch.cuda.synchronize = Event, queue.synchronize
    torch.cuda.current_stream = lambda *_: queue
    seconds = part.call(bench.time_each, queue.call, torch.device("cuda", 0), 5)
    if any(abs(seconds_row - WORK_S) > 0.05 * WORK_S for seconds_row in seconds) or len(seconds) != 5:
        raise part.wrong("still", measured=f"{1e6 * seconds[0]:,.0f}" if seconds else "no")
    part.note("a call that queues 10 ms of work is measured as 10 ms")
