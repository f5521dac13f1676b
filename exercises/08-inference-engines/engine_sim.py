"""An engine without a GPU: a scheduler plans every step, and a clock says how long the step takes.

The engine appends arriving requests to `waiting`. Before each step it calls

    plan = schedule(waiting, running, pool, budget, max_requests)

which moves requests between the two lists, and returns the tokens of this step by the name of the request. A request that has
computed its prompt and all tokens of its answer so far gets its next token at the end of the step.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PAGE = 16
_MAX_IDLE_STEPS = 50
MAX_STEPS = 200_000


@dataclass(eq=False)
class Request:
    """A request: its lengths in tokens, and its progress.

    `answer_tokens` is how long the answer will be, which an engine does not know. `generated_tokens` counts the tokens of the
    answer so far, `computed_tokens` the tokens of prompt and answer whose keys and values are in the cache. `admitted_ns` is
    when the first step begins in which it runs.

    `group` is the talk or the document that the request belongs to, `shared_tokens` the part of the prompt that it shares with
    others of its group.
    """

    name: str
    arrived_ns: int
    prompt_tokens: int
    answer_tokens: int
    group: int = 0
    shared_tokens: int = 0
    computed_tokens: int = 0
    generated_tokens: int = 0
    token_times_ns: list[int] = field(default_factory=list)
    admitted_ns: int = -1
    preemptions: int = 0
    recomputed_tokens: int = 0

    def fresh(self) -> Request:
        """Return this request as it was before anything was computed."""
        return Request(self.name, self.arrived_ns, self.prompt_tokens, self.answer_tokens, self.group, self.shared_tokens)


class PagePool:
    """The pages of a cache: how many each request holds."""

    def __init__(self, pages: int, page_size: int = PAGE) -> None:
        """`page_size` is in tokens."""
        self.pages, self.page_size = pages, page_size
        self.held: dict[str, int] = {}

    def count_free(self) -> int:
        """Return how many pages are free."""
        return self.pages - sum(self.held.values())

    def grow(self, request: Request, tokens: int) -> bool:
        """Let the request hold pages for `tokens` tokens in all. Return False, and change nothing, if too few are free."""
        missing = -(-tokens // self.page_size) - self.held.get(request.name, 0)
        if missing > self.count_free():
            return False
        self.held[request.name] = self.held.get(request.name, 0) + max(0, missing)
        return True

    def release(self, request: Request) -> None:
        """Free the pages of the request."""
        self.held.pop(request.name, None)


Schedule = Callable[[list[Request], list[Request], PagePool, int, int], dict[str, int]]


class StepClock(Protocol):
    """The method of a clock that the simulation needs; `step_clock.Clock` has it."""

    def ns(self, rows: Any) -> int:
        """Return the nanoseconds of a step, for the (past, new) tokens of each request."""


class PlanError(Exception):
    """A plan that no engine can compute. The text says why."""


@dataclass(frozen=True)
class Step:
    """A step: when it begins, its plan, the names of waiting and running requests, and the pages that each holds."""

    start_ns: int
    plan: dict[str, int]
    waiting: tuple[str, ...]
    running: tuple[str, ...]
    held: dict[str, int]
    free_pages: int


@dataclass(frozen=True)
class Run:
    """The requests of a trace after all are answered, the time at which the last answer was complete, and the steps."""

    requests: list[Request]
    end_ns: int
    steps: list[Step]


class Engine:
    """An engine: its two lists, its pages, and its scheduler. Several of them may have one time."""

    def __init__(
        self, schedule: Schedule, clock: StepClock, *, pages: int, budget: int, max_requests: int, page_size: int = PAGE
    ) -> None:
        """`budget` is in tokens of a step, `page_size` in tokens."""
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.pool, self.clock = PagePool(pages, page_size), clock
        self._schedule, self._budget, self._max_requests = schedule, budget, max_requests

    def plan_step(self, now_ns: int) -> tuple[Step, int]:
        """Let the scheduler plan a step. Return it with its end in nanoseconds; with an empty plan, it ends at once.

        Raises PlanError if the plan cannot be computed.
        """
        inside = {request.name for request in self.waiting + self.running}
        before = [(request, request.computed_tokens) for request in self.running]
        plan = self._schedule(self.waiting, self.running, self.pool, self._budget, self._max_requests)
        for request, computed in before:
            if request.computed_tokens < computed:
                request.preemptions += 1
                request.recomputed_tokens += computed
        plan = check_plan(plan, self.waiting, self.running, self.pool, inside)
        by_name = {request.name: request for request in self.running}
        step = Step(now_ns, plan, _names(self.waiting), _names(self.running), dict(self.pool.held), self.pool.count_free())
        for request in self.running:
            request.admitted_ns = now_ns if request.admitted_ns < 0 else request.admitted_ns
        rows = [(by_name[name].computed_tokens, tokens) for name, tokens in plan.items()]
        return step, now_ns + (self.clock.ns(rows) if rows else 0)

    def finish_step(self, step: Step, end_ns: int) -> list[Request]:
        """Count the tokens of the step. Return the requests whose answers are complete; their pages are free."""
        by_name, finished = {request.name: request for request in self.running}, []
        for name, tokens in step.plan.items():
            request = by_name[name]
            request.computed_tokens += tokens
            if request.computed_tokens == request.prompt_tokens + request.generated_tokens:
                request.generated_tokens += 1
                request.token_times_ns.append(end_ns)
            if request.generated_tokens == request.answer_tokens:
                self.pool.release(request)
                self.running.remove(request)
                finished.append(request)
        return finished


def simulate(
    trace: Sequence[Request], schedule: Schedule, clock: StepClock, *, pages: int, budget: int, max_requests: int,
    page_size: int = PAGE, max_steps: int = MAX_STEPS, observe: Callable[[Step], object] | None = None,
) -> Run:  # fmt: skip
    """Run a copy of the trace on one engine until all requests are answered.

    `observe` is called with each step after it was planned and before its tokens count. Raises PlanError if a plan cannot be
    computed, if nothing moves for 50 steps, or after `max_steps`.
    """
    requests = [request.fresh() for request in trace]
    coming = sorted(requests, key=lambda request: (request.arrived_ns, request.name))
    engine = Engine(schedule, clock, pages=pages, budget=budget, max_requests=max_requests, page_size=page_size)
    now, idle, steps = 0, 0, list[Step]()
    while coming or engine.waiting or engine.running:
        if coming and not engine.waiting and not engine.running:
            now = max(now, coming[0].arrived_ns)
        while coming and coming[0].arrived_ns <= now:
            engine.waiting.append(coming.pop(0))
        step, end = engine.plan_step(now)
        idle = 0 if step.plan else idle + 1
        if idle > _MAX_IDLE_STEPS:
            counts = f"{len(engine.waiting)} wait, {len(engine.running)} run, {step.free_pages} pages are free"
            raise PlanError(f"no progress: {counts}")
        if not step.plan:
            now = max(now, coming[0].arrived_ns) if coming else now
            continue
        steps.append(step)
        if observe:
            observe(step)
        engine.finish_step(step, end)
        now = end
        if len(steps) >= max_steps:
            unanswered = len(coming) + len(engine.waiting) + len(engine.running)
            raise PlanError(f"{unanswered} requests have no answer after {max_steps:,} steps")
    return Run(requests, now, steps)


def check_plan(
    plan: object, waiting: Sequence[Request], running: Sequence[Request], pool: PagePool, inside: set[str]
) -> dict[str, int]:
    """Return the plan with Python's integers. Raise PlanError if no engine can compute it.

    `inside` has the names that were in the two lists before.
    """
    if not isinstance(plan, dict):
        raise PlanError(f"a plan is a dictionary, not {type(plan).__name__}")
    names = [request.name for request in [*waiting, *running]]
    if sorted(names) != sorted(inside):
        missing, twice = inside - set(names), {name for name in names if names.count(name) > 1}
        request = min(missing | twice | (set(names) - inside))
        raise PlanError(f"{request} is {'in no list' if request in missing else 'listed twice'} after planning")
    by_name = {request.name: request for request in running}
    for name, tokens in plan.items():
        if not isinstance(name, str):
            raise PlanError(f"the keys of a plan are names of requests, not {type(name).__name__}")
        if name not in by_name:
            raise PlanError(f"{name} is in the plan, but does not run")
        request = by_name[name]
        rest = request.prompt_tokens + request.generated_tokens - request.computed_tokens
        if not isinstance(tokens, numbers.Integral) or not 1 <= tokens <= rest:
            raise PlanError(f"{name} gets {tokens!r} tokens, but has {rest} to compute")
        pages, total = pool.held.get(name, 0), request.computed_tokens + tokens
        if pages * pool.page_size < total:
            raise PlanError(f"{name} holds {pages} pages, but {total} tokens need {-(-total // pool.page_size)}")
    return {name: int(tokens) for name, tokens in plan.items()}


def _names(requests: Sequence[Request]) -> tuple[str, ...]:
    return tuple(request.name for request in requests)


def take_percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that is not below `percent` percent of the values."""
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
