"""An engine without a GPU: paged_engine.py plans every step, and a clock says how long the step takes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from paged_engine import Engine, PagePool, PlanError, Request, Schedule, Step

MAX_STEPS = 200_000


class StepClock(Protocol):
    """The method of a clock that the simulation needs; `step_clock.Clock` has it."""

    def ns(self, rows: Any) -> int:
        """Return the nanoseconds of a step, for the (past, new) tokens of each request."""


@dataclass(frozen=True)
class Run:
    """The requests of a trace after all are answered, the time at which the last answer was complete, and the steps."""

    requests: list[Request]
    end_ns: int
    steps: list[Step]


def simulate(
    trace: Sequence[Request], schedule: Schedule, clock: StepClock, *, pages: int, budget: int, max_requests: int,
    pool: PagePool | None = None, max_steps: int = MAX_STEPS, observe: Callable[[Step], object] | None = None,
) -> Run:  # fmt: skip
    """Run a copy of the trace on one engine until all requests are answered, and return the run.

    `pool` replaces a pool of `pages` pages. `observe` is called with each step after the engine has planned it and before it
    computes it. Raises PlanError if a plan cannot be computed, if nothing moves for 50 steps, or after `max_steps`.
    """
    requests = [request.fresh() for request in trace]
    coming = sorted(requests, key=lambda request: (request.arrived_ns, request.name))
    engine = Engine(schedule, pool or PagePool(pages), budget=budget, max_requests=max_requests)
    now, steps = 0, list[Step]()
    while coming or engine.waiting or engine.running:
        if coming and not engine.waiting and not engine.running:
            now = max(now, coming[0].arrived_ns)
        while coming and coming[0].arrived_ns <= now:
            engine.waiting.append(coming.pop(0))
        step = engine.plan_step(now)
        if not step.plan:
            now = max(now, coming[0].arrived_ns) if coming else now
            continue
        steps.append(step)
        if observe:
            observe(step)
        now += clock.ns([(step.past[name], tokens) for name, tokens in step.plan.items()])
        engine.finish_step(step, now)
        if len(steps) >= max_steps:
            unanswered = len(coming) + len(engine.waiting) + len(engine.running)
            raise PlanError(f"{unanswered} requests have no answer after {max_steps:,} steps")
    return Run(requests, now, steps)


def take_percentile(values: Sequence[float], percent: int) -> float:
    """Return the percentile: the smallest value such that at least `percent` percent of all values are no larger."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def find_tpot_ms(request: Request) -> float | None:
    """Return the mean time between the tokens of a finished answer, or None if it has only one."""
    if request.answer_tokens == 1:
        return None
    return (request.token_times_ns[-1] - request.token_times_ns[0]) / 1e6 / (request.answer_tokens - 1)


def find_ttft_ms(request: Request) -> float:
    """Return the time from the arrival of a request to its first token."""
    return (request.token_times_ns[0] - request.arrived_ns) / 1e6


def is_within(request: Request, ttft_ms: float, tpot_ms: float) -> bool:
    """Return whether a finished request met both limits."""
    return find_ttft_ms(request) <= ttft_ms and (find_tpot_ms(request) or 0.0) <= tpot_ms


def describe(requests: Sequence[Request], end_ns: int, *, ttft_ms: float, tpot_ms: float) -> dict[str, float | int | None]:
    """Return the times of finished requests, and goodput: the percentage of requests that met both limits.

    A pause is the time between two tokens of an answer. Times between tokens are None if no answer has two.
    """
    ttft = [find_ttft_ms(request) for request in requests]
    tpot = [time for request in requests if (time := find_tpot_ms(request)) is not None]
    pauses = [(later - earlier) / 1e6 for request in requests for earlier, later in itertools.pairwise(request.token_times_ns)]
    return {
        "sim_ttft_p50_ms": take_percentile(ttft, 50),
        "sim_ttft_p99_ms": take_percentile(ttft, 99),
        "sim_tpot_p50_ms": take_percentile(tpot, 50) if tpot else None,
        "sim_tpot_p99_ms": take_percentile(tpot, 99) if tpot else None,
        "sim_longest_pause_ms": max(pauses, default=None),
        "sim_tokens_per_s": sum(request.answer_tokens for request in requests) / (end_ns / 1e9),
        "goodput_percent": 100 * sum(is_within(request, ttft_ms, tpot_ms) for request in requests) / len(requests),
        "preempted": sum(request.preemptions for request in requests),
        "computed_again": sum(request.recomputed_tokens for request in requests),
    }
