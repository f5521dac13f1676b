"""Run tasks in parallel threads, and handle their errors and Ctrl-C in one place."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

from gpucourse.errors import CloudUnreachable, GpucourseError

T = TypeVar("T")

_SLICE_S = 0.2


def run_all(tasks: Sequence[Callable[[], T]], *, limit: int) -> list[T]:
    """Run the tasks and return their results in the tasks' order. If any failed, raise the first error once all have ended."""
    results = try_all(tasks, limit=limit)
    for result in results:
        if isinstance(result, GpucourseError):
            raise result
    return results  # type: ignore[return-value]  # it contains no errors now


def try_all(
    tasks: Sequence[Callable[[], T]],
    *,
    limit: int,
    within_s: float | None = None,
    on_interrupt: Callable[[], None] | None = None,
) -> list[T | GpucourseError]:
    """Run the tasks, at most `limit` at the same time. Return the result or the GpucourseError of each task, in order.

    Any other exception is a bug and is raised. Ctrl-C raises KeyboardInterrupt.

    `within_s`: abandon a task that has not ended after this many seconds; its result is CloudUnreachable.
    `on_interrupt`: on Ctrl-C, call this function and wait for the tasks that have begun. Without this function, Ctrl-C does
    not wait, and the threads do not keep the process alive. With the function, a single task runs in the caller's thread,
    where Ctrl-C arrives.
    """
    results: dict[int, T | GpucourseError] = {}
    faults: list[BaseException] = []
    waiting = deque(range(len(tasks)))
    end_events = [threading.Event() for _ in tasks]  # not Thread.join: after one interrupt it regards the thread as ended

    def work() -> None:
        while (number := _next(waiting)) is not None:
            try:
                results[number] = tasks[number]()
            except GpucourseError as error:
                results[number] = error
            except BaseException as fault:  # noqa: BLE001  raised again in the caller's thread
                faults.append(fault)
            finally:
                end_events[number].set()

    try:
        if on_interrupt is not None and len(tasks) == 1:
            work()
        else:
            for _ in range(min(limit, len(tasks))):
                threading.Thread(target=work, name="task", daemon=on_interrupt is None).start()
            _wait(end_events, within_s)
    except KeyboardInterrupt:
        _drop(waiting, end_events)
        if on_interrupt is not None:
            on_interrupt()
            _wait(end_events, None)
        raise
    if faults:
        raise faults[0]
    completed = dict(results)  # a copy, which late tasks cannot change
    timeout_error = CloudUnreachable(
        f"no answer within {within_s or 0:.0f} s", hint="check the network, then type the command again"
    )
    return [completed.get(number, timeout_error) for number in range(len(tasks))]


def _next(waiting: deque[int]) -> int | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _drop(waiting: deque[int], end_events: Sequence[threading.Event]) -> None:
    """Mark the tasks that have not begun as ended, so that they are never started."""
    while (number := _next(waiting)) is not None:
        end_events[number].set()


def _wait(end_events: Sequence[threading.Event], within_s: float | None) -> None:
    deadline = math.inf if within_s is None else time.monotonic() + within_s
    for event in end_events:
        # Wait in slices: a Ctrl-C just before a wait begins does not interrupt it, and is handled only after the wait.
        while not event.wait(min(_SLICE_S, max(0.0, deadline - time.monotonic()))) and time.monotonic() < deadline:
            pass
