"""Plan and count the steps of the engine of exercises 1.2, 4.3 and 8.2 to 8.4. The model that computes them is elsewhere.

The engine appends arriving requests to `waiting`. Before each step it calls

    plan = schedule(waiting, running, pool, budget, max_requests)

which moves requests between the two lists, and returns the tokens of this step by the name of the request. A request that has
computed its prompt and all tokens of its answer so far gets its next token at the end of the step.

Scheduler and pool of pages can be replaced: in module 8 they are the learner's. paged_model.py computes the steps on a model,
and engine_sim.py of module 8 simulates their times.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PAGE = 16
PART_ENGINE = "yours"  # the model name under which serve.py serves an engine with a learner's part
LONGEST_ANSWER = 512
_MAX_IDLE_STEPS = 50
STATIC_BATCH = 16


@dataclass(eq=False)
class Request:
    """A request: its lengths in tokens, and its progress.

    `answer_tokens` is how long the answer will be, which an engine does not know. `generated_tokens` counts the tokens of the
    answer so far, `computed_tokens` the tokens of prompt and answer whose keys and values are in the cache. `admitted_ns` is
    when its first step begins.

    `max_answer_tokens` is the limit that the client sets.

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
    max_answer_tokens: int = LONGEST_ANSWER

    def count_rest(self) -> int:
        """Return how many tokens of the prompt and of the answer so far are not computed."""
        return self.prompt_tokens + self.generated_tokens - self.computed_tokens

    def fresh(self) -> Request:
        """Return a copy of this request for which nothing has been computed."""
        lengths = self.prompt_tokens, self.answer_tokens, self.group, self.shared_tokens
        return Request(self.name, self.arrived_ns, *lengths, max_answer_tokens=self.max_answer_tokens)


class PagePool:
    """The pages of a cache: which of them each request holds."""

    def __init__(self, pages: int, page_size: int = PAGE) -> None:
        """`page_size` is in tokens."""
        self.page_size = page_size
        self._free = list(range(pages))
        self._tables: dict[str, list[int]] = {}

    def count_free(self) -> int:
        """Return how many pages are free."""
        return len(self._free)

    def table(self, name: str) -> list[int]:
        """Return the pages of a request, in the order of its text."""
        return self._tables.get(name, [])

    def grow(self, request: Request, tokens: int) -> bool:
        """Let the request hold pages for `tokens` tokens in all. Return False, and change nothing, if too few are free."""
        table = self.table(request.name)
        missing = -(-tokens // self.page_size) - len(table)
        if missing > len(self._free):
            return False
        self._tables[request.name] = table + [self._free.pop() for _ in range(missing)]
        return True

    def release(self, request: Request) -> None:
        """Free the pages of the request."""
        self._free += self._tables.pop(request.name, [])

    def count_found(self, _request: Request) -> int:
        """Return how many tokens of a request need not be computed, because its pages were computed for another request."""
        return 0

    def keep(self, request: Request) -> None:
        """Record that the keys and values of the request's first `computed_tokens` tokens are in its pages."""


class PrefixPool(PagePool):
    """The pages of a prefix cache, in which a request finds what was computed for others: my_prefix.py of 8.4."""

    def __init__(self, cache: Any, page_size: int, texts: Mapping[str, list[int]]) -> None:
        """`cache` is a my_prefix.PrefixCache. `texts` has the tokens of each request, including its answer so far."""
        self.page_size, self._cache, self._texts = page_size, cache, texts
        self._found: dict[str, int] = {}

    def count_free(self) -> int:
        """Return how many pages are free."""
        return int(self._cache.count_free())

    def table(self, name: str) -> list[int]:
        """Return the pages of a request, in the order of its text."""
        return list(self._cache.pages(name)) if name in self._found else []

    def grow(self, request: Request, tokens: int) -> bool:
        """Let the request hold pages for its text and for `tokens` tokens in all. Return False if too few are free."""
        name, is_new = request.name, request.name not in self._found
        if is_new:
            start = self._cache.start(name, list(self._texts[name]), "")
            if start is None:
                return False
            self._found[name] = int(start)
        has_room = bool(self._cache.grow(name, tokens))
        if is_new and not has_room:
            self.release(request)
        return has_room

    def release(self, request: Request) -> None:
        """Free the pages of the request. They can still be found."""
        if self._found.pop(request.name, None) is not None:
            self._cache.end(request.name)

    def count_found(self, request: Request) -> int:
        """Return how many tokens of a request need not be computed, because its pages were computed for another request."""
        return self._found[request.name]

    def keep(self, request: Request) -> None:
        """Record that the keys and values of the request's first `computed_tokens` tokens are in its pages."""
        self._cache.computed(request.name, self._texts[request.name][: request.computed_tokens])


Schedule = Callable[[list[Request], list[Request], PagePool, int, int], dict[str, int]]


class PlanError(Exception):
    """A plan that no engine can compute. The text says why."""


@dataclass(frozen=True)
class Step:
    """A step: when it begins, its plan, the tokens that each of its requests had computed before, and the two lists."""

    start_ns: int
    plan: dict[str, int]
    past: dict[str, int]
    waiting: tuple[str, ...]
    running: tuple[str, ...]
    free_pages: int


class Engine:
    """An engine: its two lists, its pages, and its scheduler."""

    def __init__(self, schedule: Schedule, pool: PagePool, *, budget: int, max_requests: int) -> None:
        """`budget` is the largest number of tokens in a step."""
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.pool, self._schedule, self._budget, self._max_requests = pool, schedule, budget, max_requests
        self._idle_steps = 0

    def plan_step(self, now_ns: int) -> Step:
        """Let the scheduler plan a step, and return it.

        Raises PlanError if the plan cannot be computed, and when 50 plans in a row are empty.
        """
        listed = {request.name for request in self.waiting + self.running}
        before = [(request, request.computed_tokens) for request in self.running]
        plan = self._schedule(self.waiting, self.running, self.pool, self._budget, self._max_requests)
        for request, computed in before:
            if request.computed_tokens < computed:
                request.preemptions += 1
                request.recomputed_tokens += computed
        plan = check_plan(plan, self.waiting, self.running, self.pool, listed)
        self._idle_steps = 0 if plan else self._idle_steps + 1
        if self._idle_steps > _MAX_IDLE_STEPS:
            counts = f"{len(self.waiting)} wait, {len(self.running)} run, {self.pool.count_free()} pages are free"
            raise PlanError(f"no progress: {counts}")
        past = {}
        for request in self.running:
            request.admitted_ns = now_ns if request.admitted_ns < 0 else request.admitted_ns
            if request.name not in plan:
                continue
            if not request.computed_tokens:
                request.computed_tokens = self.pool.count_found(request)
                plan[request.name] = min(plan[request.name], request.count_rest())
            past[request.name] = request.computed_tokens
        return Step(now_ns, plan, past, _names(self.waiting), _names(self.running), self.pool.count_free())

    def finish_step(self, step: Step, end_ns: int) -> list[Request]:
        """Count the tokens of the step. Return the requests whose answers are complete; their pages are free."""
        by_name, finished = {request.name: request for request in self.running}, []
        for name, tokens in step.plan.items():
            request = by_name[name]
            request.computed_tokens += tokens
            self.pool.keep(request)
            if not request.count_rest():
                request.generated_tokens += 1
                request.token_times_ns.append(end_ns)
            if request.generated_tokens == request.answer_tokens:
                self.pool.release(request)
                self.running.remove(request)
                finished.append(request)
        return finished


def check_plan(
    plan: object, waiting: Sequence[Request], running: Sequence[Request], pool: PagePool, listed: set[str]
) -> dict[str, int]:
    """Return the plan with Python's integers. Raise PlanError if no engine can compute it.

    `listed` has the names that were in the two lists before.
    """
    if not isinstance(plan, dict):
        raise PlanError(f"a plan is a dictionary, not {type(plan).__name__}")
    names = [request.name for request in [*waiting, *running]]
    if sorted(names) != sorted(listed):
        missing, duplicates = listed - set(names), {name for name in names if names.count(name) > 1}
        request = min(missing | duplicates | (set(names) - listed))
        raise PlanError(f"{request} is {'in no list' if request in missing else 'listed twice'} after planning")
    by_name = {request.name: request for request in running}
    for name, tokens in plan.items():
        if not isinstance(name, str):
            raise PlanError(f"the keys of a plan are names of requests, not {type(name).__name__}")
        if name not in by_name:
            raise PlanError(f"{name} is in the plan, but does not run")
        request = by_name[name]
        rest = request.count_rest()
        if not isinstance(tokens, (int, numbers.Integral)) or not 1 <= tokens <= rest:
            raise PlanError(f"{name} gets {tokens!r} tokens, but has {rest} to compute")
        pages, total = len(pool.table(name)), request.computed_tokens + tokens
        if pages * pool.page_size < total:
            raise PlanError(f"{name} holds {pages} pages, but {total} tokens need {-(-total // pool.page_size)}")
    return {name: int(tokens) for name, tokens in plan.items()}


def static(waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int) -> dict[str, int]:
    """Return a plan that begins a batch when all answers of the last batch are complete.

    Its first step has whole prompts, whatever the budget.
    """
    del budget
    if not running:
        while waiting and len(running) < min(max_requests, STATIC_BATCH) and reserve(waiting[0], pages):
            running.append(waiting.pop(0))
    return {request.name: request.count_rest() for request in running}


def prompts_first(
    waiting: list[Request], running: list[Request], pages: PagePool, budget: int, max_requests: int
) -> dict[str, int]:
    """Return a plan that computes whole prompts as soon as requests may join.

    Other answers continue in the steps without a prompt.

    A prompt longer than `budget` is computed in a separate step. Each request reserves pages for the longest answer that it may
    get, so no request is preempted.
    """
    plan: dict[str, int] = {}
    while waiting and len(running) < max_requests:
        tokens = waiting[0].count_rest()
        if (plan and sum(plan.values()) + tokens > budget) or not reserve(waiting[0], pages):
            break
        running.append(waiting.pop(0))
        plan[running[-1].name] = tokens
    return plan or {request.name: 1 for request in running}


def reserve(request: Request, pages: PagePool) -> bool:
    """Let the request hold pages for its prompt and the longest answer that it may get. Return whether there are enough."""
    return pages.grow(request, request.prompt_tokens + request.max_answer_tokens)


def _names(requests: Sequence[Request]) -> tuple[str, ...]:
    return tuple(request.name for request in requests)
