"""Several engines behind a router, with one clock: which engine gets a request, how long it waits, and which requests meet the
limits.

An engine computes all running answers in each step, and gives what remains of its budget to prompts, in the order in which they
came. It admits a request when there are pages for all of its tokens, so that no request is preempted; tokens that it has kept
of an earlier text need no further pages. All times are integers.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from engine_sim import is_within, take_percentile
from paged_engine import PAGE, Request
from slice_clock import SliceClock

KEPT_PERCENT = 25  # of the pages are for texts of earlier requests
MAX_REQUESTS = 64
_HAND_OVER_NS, _HAND_OVER_BYTES_PER_S = 100_000, 25 * 10**9


class EngineState(Protocol):
    """The figures of an engine that a router may use."""

    def count_found(self, request: Request) -> int:
        """Return how many tokens of the prompt need not be computed, because the engine has kept them."""

    def load_tokens(self) -> int:
        """Return the work of the engine as a number of prompt tokens: those still to compute, and a tenth of the tokens
        that unfinished answers have in the cache, which each of their steps reads."""

    def requests(self) -> int:
        """Return how many requests are in the engine, waiting ones included."""


Choose = Callable[[Request, Sequence[EngineState]], int]


class Engine:
    """An engine of a service. `role` is both, prefill (it computes prompts only) or decode (answers only)."""

    def __init__(self, clock: SliceClock, *, budget: int, role: str = "both") -> None:
        """`budget` is how many tokens a step may compute."""
        kept = clock.pages() * KEPT_PERCENT // 100
        self.clock, self.budget, self.role = clock, budget, role
        self.free_pages, self.kept_tokens = clock.pages() - kept, kept * PAGE
        self.waiting: deque[Request] = deque()
        self.prompts: list[tuple[Request, int]] = []  # with the tokens of this step
        self.is_busy = False
        self._texts: dict[int, int] = {}  # tokens that are kept of each talk or document, the oldest first
        self._answers: list[tuple[int, int, Request]] = []  # a heap: the step that ends the answer, a number, the request
        self._held: dict[str, int] = {}  # pages of each request
        self._numbers, self._steps, self._cached = itertools.count(), 0, 0

    def count_found(self, request: Request) -> int:
        """Return how many tokens of the prompt need not be computed. At least one always is."""
        return min(self._texts.get(request.group, 0), request.shared_tokens, request.prompt_tokens - 1) // PAGE * PAGE

    def load_tokens(self) -> int:
        """Return the tokens of prompts that are still to be computed, and a tenth of those that answers have in the cache."""
        inside = itertools.chain(self.waiting, (request for request, _ in self.prompts))
        return sum(request.prompt_tokens - request.computed_tokens for request in inside) + self._cached // 10

    def requests(self) -> int:
        """Return how many requests are in the engine, waiting ones included."""
        return len(self.waiting) + len(self.prompts) + len(self._answers)

    def keep(self, request: Request, tokens: int) -> None:
        """Keep `tokens` tokens of a text, and forget those that were used least recently if there are too many."""
        self._texts.pop(request.group, None)
        self._texts[request.group] = tokens
        while sum(self._texts.values()) > self.kept_tokens:
            self._texts.pop(next(iter(self._texts)))

    def begin_step(self) -> int | None:
        """Plan a step. Return its duration in nanoseconds, or None if there is nothing to compute."""
        budget = self.budget - len(self._answers)
        prompts = []
        for request, _ in self.prompts:
            tokens = min(request.prompt_tokens - request.computed_tokens, budget)
            prompts.append((request, tokens))
            budget -= tokens
        while self.waiting and budget > 0 and len(prompts) + len(self._answers) < MAX_REQUESTS:
            request = self.waiting[0]
            if not self._take_pages(request):
                break
            self.waiting.popleft()
            if tokens := min(request.prompt_tokens - request.computed_tokens, budget):
                prompts.append((request, tokens))
            else:  # its prompt was computed by another engine
                self._begin_answer(request)
            budget -= max(1, tokens)
        self.prompts = prompts
        answers = len(self._answers)
        if not answers and not any(tokens for _, tokens in prompts):
            return None
        new = answers + sum(tokens for _, tokens in prompts)
        cached = self._cached + answers + sum(request.computed_tokens + tokens for request, tokens in prompts)
        scores = sum(tokens * request.computed_tokens + tokens * (tokens + 1) // 2 for request, tokens in prompts)
        return self.clock.ns_of_sums(new, cached, self._cached + answers + scores)

    def finish_step(self, now_ns: int) -> tuple[list[Request], list[Request]]:
        """Count the tokens of the step. Return the requests that are complete, and those whose answer is for another engine."""
        complete, handed = [], []
        self._steps += 1
        self._cached += len(self._answers)
        while self._answers and self._answers[0][0] == self._steps:
            request = heapq.heappop(self._answers)[2]
            self._cached -= request.prompt_tokens + request.answer_tokens - 1
            complete.append(request)
        rest = []
        for request, tokens in self.prompts:
            request.computed_tokens += tokens
            if request.computed_tokens < request.prompt_tokens:
                rest.append((request, 0))
                continue
            request.token_times_ns.append(now_ns)
            request.generated_tokens = 1
            self.keep(request, request.prompt_tokens)
            if request.answer_tokens == 1:
                complete.append(request)
            elif self.role == "prefill":
                self.free_pages += self._held.pop(request.name)
                handed.append(request)
            else:
                self._begin_answer(request)
        self.prompts = rest
        for request in complete:
            self.free_pages += self._held.pop(request.name)
            self.keep(request, request.prompt_tokens + request.answer_tokens)
            if request.answer_tokens > 1:
                request.token_times_ns.append(now_ns)
        return complete, handed

    def _take_pages(self, request: Request) -> bool:
        """Take the pages for a request, without those of tokens that were found. Return False if too few are free."""
        found_tokens = 0 if request.token_times_ns else request.computed_tokens
        pages = -(-(request.prompt_tokens + request.answer_tokens - found_tokens) // PAGE)
        if pages > self.free_pages:
            return False
        self.free_pages -= pages
        self._held[request.name] = pages
        return True

    def _begin_answer(self, request: Request) -> None:
        end = self._steps + request.answer_tokens - 1
        heapq.heappush(self._answers, (end, next(self._numbers), request))
        self._cached += request.prompt_tokens


@dataclass(frozen=True)
class Service:
    """A trace that was served. `token_times_ns` of a request has the times of its first and its last token.

    `found` has the tokens of each prompt that were found in a cache. `handed_bytes` went from one pool to the other. `area_ns`
    adds up the requests inside over the time, `inside_ns` the times of all requests: by Little's law they are equal.
    """

    requests: list[Request]
    engine_of: list[int]
    found: list[int]
    handed_bytes: int
    area_ns: int
    inside_ns: int
    end_ns: int

    def list_within(self, ttft_ms: float, tpot_ms: float) -> list[bool]:
        """Return for each request whether it meets both limits."""
        return [is_within(request, ttft_ms, tpot_ms) for request in self.requests]

    def goodput_percent(self, ttft_ms: float, tpot_ms: float) -> float:
        """Return the percentage of requests that meet both limits."""
        return 100 * sum(self.list_within(ttft_ms, tpot_ms)) / len(self.requests)

    def ttft_ms(self, percent: int) -> float:
        """Return the TTFT that `percent` percent of the requests do not exceed."""
        times = [request.token_times_ns[0] - request.arrived_ns for request in self.requests]
        return take_percentile(times, percent) / 1e6

    def found_percent(self, first: int | None = None) -> float:
        """Return the percentage of prompt tokens that were found, of all requests or of the first ones."""
        return 100 * sum(self.found[:first]) / sum(request.prompt_tokens for request in self.requests[:first])

    def good_tokens(self, ttft_ms: float, tpot_ms: float) -> int:
        """Return the number of tokens in the answers that are within both limits."""
        return sum(request.answer_tokens for request in self.requests if is_within(request, ttft_ms, tpot_ms))


def run_service(trace: Iterable[Request], engines: Sequence[Engine], choose: Choose) -> Service:
    """Serve a copy of the trace, and return it when all answers are complete.

    `choose` returns the place of an engine among those that compute prompts. Raises ValueError if it returns anything else, or
    if no engine has pages for a request.
    """
    requests = [request.fresh() for request in trace]
    fronts = [engine for engine in engines if engine.role != "decode"]
    backs = [engine for engine in engines if engine.role == "decode"]
    numbers = itertools.count()
    events: list[tuple[int, int, Any, Any]] = [
        (request.arrived_ns, next(numbers), None, request) for request in sorted(requests, key=lambda one: one.arrived_ns)
    ]
    engine_of: dict[str, int] = {}
    found_tokens: dict[str, int] = {}
    area = last = inside = handed_bytes = 0

    def begin(engine: Engine, now: int) -> None:
        if not engine.is_busy and (duration := engine.begin_step()) is not None:
            engine.is_busy = True
            heapq.heappush(events, (now + duration, next(numbers), engine, None))

    while events:
        now, _, engine, request = heapq.heappop(events)
        area += inside * (now - last)
        last = now
        if request is None:  # a step has ended
            engine.is_busy = False
            complete, handed = engine.finish_step(now)
            inside -= len(complete)
            for one in handed:
                size = engine.clock.cache_bytes * one.prompt_tokens
                handed_bytes += size
                arrival = now + _HAND_OVER_NS + -(-size * 10**9 // _HAND_OVER_BYTES_PER_S)
                target = min(backs, key=lambda back: back.requests())
                heapq.heappush(events, (arrival, next(numbers), target, one))
        elif engine is None:  # a request arrives
            inside += 1
            view = replace(request, answer_tokens=0)  # a router does not know the length of the answer
            engine = _find_engine(choose(view, fronts), fronts)
            engine_of[request.name] = fronts.index(engine)
            request.computed_tokens = found_tokens[request.name] = engine.count_found(request)
            engine.waiting.append(request)
        else:  # its keys arrive from the other pool
            engine.waiting.append(request)
        begin(engine, now)
    if waiting := sum(len(engine.waiting) for engine in engines):
        raise ValueError(f"no engine has pages for all of a request: {waiting} requests wait for ever")
    inside_ns = sum(request.token_times_ns[-1] - request.arrived_ns for request in requests)
    places, tokens = [engine_of[request.name] for request in requests], [found_tokens[request.name] for request in requests]
    return Service(requests, places, tokens, handed_bytes, area, inside_ns, last)


def _find_engine(place: object, engines: Sequence[Engine]) -> Engine:
    number = place.tolist() if hasattr(place, "tolist") else place  # an array or a tensor with a single number
    if type(number) is not int or not 0 <= number < len(engines):
        raise ValueError(f"the router chose engine {place!r:.40}, of engines 0 to {len(engines) - 1}")
    return engines[number]


class RoundRobin:
    """Chooses one engine after the other, whatever their load."""

    def __init__(self) -> None:
        self._turns = itertools.count()

    def __call__(self, _request: Request, engines: Sequence[EngineState]) -> int:
        """Return the next engine's place."""
        return next(self._turns) % len(engines)


def choose_fewest_requests(_request: Request, engines: Sequence[EngineState]) -> int:
    """Return the place of the engine with the fewest requests."""
    return min(range(len(engines)), key=lambda place: engines[place].requests())


def choose_fewest_tokens(_request: Request, engines: Sequence[EngineState]) -> int:
    """Return the place of the engine with the fewest tokens to compute."""
    return min(range(len(engines)), key=lambda place: engines[place].load_tokens())


def choose_by_document(request: Request, engines: Sequence[EngineState]) -> int:
    """Return the same engine for every request about a document."""
    return (request.group * 2654435761 >> 7) % len(engines)


def choose_most_found(request: Request, engines: Sequence[EngineState]) -> int:
    """Return the place of the engine that has kept the most tokens of the prompt."""
    return max(range(len(engines)), key=lambda place: engines[place].count_found(request))


ROUTERS: dict[str, Callable[[], Choose]] = {
    "round robin": RoundRobin,
    "fewest requests": lambda: choose_fewest_requests,
    "fewest tokens": lambda: choose_fewest_tokens,
    "hash of the document": lambda: choose_by_document,
    "most found": lambda: choose_most_found,
}
"""Routers by name. Calling an entry returns a new router."""
