"""Judge my_router.py of 8.8 by goodput on three traces, and name a simpler router only if yours always chooses like it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from request_traces import make_trace
from service_cluster import Engine, Service, run_service
from slice_clock import SliceClock
from step_clock import Clock

from gpucourse.judge import Part, Verdict, Way

ENGINES, BUDGET, REQUESTS = 4, 512, 500
WAYS = {
    "most-found": Way(
        "only {good:.1f} % of {name} meet the limits: {share:.0%} of the requests are on one engine, as it has kept the most "
        "tokens. Waiting in its queue takes longer than computing the prompt again on another engine",
        ("return missing + engine.load_tokens()", "return missing"),
    ),
    "load-only": Way(
        "{good:.1f} % of {name} meet the limits, but {best:.1f} % are possible: you found {found:.0f} % of the tokens, "
        "and {possible:.0f} % could be found. An engine that has a document has less to compute",
        ("return missing + engine.load_tokens()", "return engine.load_tokens()"),
    ),
    "hash": Way(
        "{good:.1f} % of {name} meet the limits: every request about a document goes to the same engine. {share:.0%} of the "
        "requests are on one engine, and it is overloaded",
        ("return missing + engine.load_tokens()", "return (request.group + place) * 7 % len(engines)"),
    ),
    "worst": Way(
        "only {good:.1f} % of {name} meet the limits: {share:.0%} of the requests are on the engine with the most to do. A "
        "larger cost is worse, so take the smallest",
        ("return missing + engine.load_tokens()", "return -missing - engine.load_tokens()"),
    ),
    "requests-for-tokens": Way(
        "{good:.1f} % of {name} meet the limits, but {best:.1f} % are possible: you count requests, and a prompt of 8,000 "
        "tokens is not as much work as one of 500. Compare tokens with tokens",
        ("return missing + engine.load_tokens()", "return missing + engine.requests()"),
    ),
    "in-turns": Way(
        "{good:.1f} % of {name} meet the limits, but {best:.1f} % are possible: your engines get {least} to {most} requests "
        "each, whatever is in them",
        ("return missing + engine.load_tokens()", "return (place - int(request.name[1:])) % len(engines)"),
    ),
}
OBSERVATION = (
    "{good:.1f} % of {name} meet the limits, and {best:.1f} % are possible: you found {found:.0f} % of the tokens, and your "
    "engines get {least} to {most} requests each. Compare what a request has to wait for on each engine"
)


@dataclass(frozen=True)
class Trial:
    """A trace with its limits, and how far below the course's router a good router may be."""

    name: str
    kind: str
    per_s: float
    ttft_ms: int
    tpot_ms: int
    room_percent: float


TRIALS = (
    Trial("the requests about hot documents", "hot", 8.5, 2000, 100, 5),
    Trial("the talks", "talks", 4.5, 1000, 100, 8),
    Trial("the long prompts", "documents", 2, 2000, 100, 4),
)


def judge(part: Part) -> None:
    """Judge goodput on hot documents, on talks, and on prompts of very different lengths."""
    choose = part.function("choose")
    for trial in TRIALS:
        trace = make_trace(trial.kind, REQUESTS, trial.per_s)
        service = _run(trace, lambda request, engines, trial=trial: _ask(part, choose, request, engines, trial))
        best = _run(trace, _choose)
        if service.goodput_percent(trial.ttft_ms, trial.tpot_ms) < (
            best.goodput_percent(trial.ttft_ms, trial.tpot_ms) - trial.room_percent
        ):
            answers = [
                _ask(part, choose, replace(trace[0], prompt_tokens=PROMPT, answer_tokens=0), engines, trial)
                for engines in STATES
            ]
            _name(part, trial, trace, service, best, answers)
    part.note(f"{len(TRIALS)} traces of {REQUESTS} requests on {ENGINES} engines, by the clock of an L4's data sheet")


def _choose(request: Any, engines: Any) -> int:
    """Return the place of the engine that the course's router chooses."""
    cost = [request.prompt_tokens - engine.count_found(request) + engine.load_tokens() for engine in engines]
    return cost.index(min(cost))


def _run(trace: Any, choose: Any) -> Service:
    clock = SliceClock(Clock())
    return run_service(trace, [Engine(clock, budget=BUDGET) for _ in range(ENGINES)], choose)


def _ask(part: Part, choose: Any, request: Any, engines: Any, trial: Trial) -> int:
    place = part.call(choose, request, engines, case=trial.name)
    place = place.tolist() if hasattr(place, "tolist") else place
    if type(place) is not int or not 0 <= place < len(engines):
        raise Verdict("failed", "no-engine", f"it returned {place!r:.40}, of engines 0 to {len(engines) - 1}", trial.name)
    return place


@dataclass(frozen=True)
class Still:
    """An engine with a fixed state: the tokens that it has kept, its load, and how many requests are in it."""

    kept: int
    load: int
    inside: int

    def count_found(self, _request: Any) -> int:
        """Return the tokens that are kept."""
        return self.kept

    def load_tokens(self) -> int:
        """Return the load."""
        return self.load

    def requests(self) -> int:
        """Return how many requests are in the engine."""
        return self.inside


PROMPT = 4000
STATES = (
    (Still(400, 900, 30), Still(420, 9000, 56), Still(0, 300, 60), Still(160, 2000, 2)),
    (Still(0, 40, 45), Still(96, 7000, 1), Still(800, 500, 20), Still(832, 6000, 63)),
    (Still(1616, 5000, 62), Still(1600, 1200, 9), Still(32, 8000, 3), Still(16, 100, 40)),
    (Still(64, 9500, 7), Still(0, 50, 55), Still(2016, 4100, 61), Still(2000, 1900, 12)),
    (Still(3200, 5000, 10), Still(3216, 9900, 58), Still(48, 600, 4), Still(0, 200, 33)),
    (Still(32, 700, 5), Still(0, 90, 38), Still(1200, 3000, 14), Still(1216, 8800, 59)),
)
"""States of four engines: two routers of different ways choose different engines in at least three of them."""
RULES: tuple[tuple[str, Callable[[Still], int]], ...] = (
    ("worst", lambda engine: engine.kept - engine.load),
    ("worst", lambda engine: -engine.load),
    ("most-found", lambda engine: -engine.kept),
    ("load-only", lambda engine: engine.load),
    ("load-only", lambda engine: engine.inside),
    ("requests-for-tokens", lambda engine: engine.inside - engine.kept),
)
"""The ways of simpler routers, and the cost of an engine in each; they choose the lowest cost."""


def _name(part: Part, trial: Trial, trace: Any, service: Service, best: Service, answers: Sequence[int]) -> None:
    """Raise the verdict if the router keeps too few requests within their limits. `answers` are its choices in STATES."""
    good, possible = (one.goodput_percent(trial.ttft_ms, trial.tpot_ms) for one in (service, best))
    places = service.engine_of
    counts = Counter(places)
    most, least = max(counts.values()), min(counts[place] for place in range(ENGINES))
    values = {
        "good": good, "best": possible, "name": trial.name, "share": most / len(trace), "most": most, "least": least,
        "found": service.found_percent(), "possible": best.found_percent(),
    }  # fmt: skip
    for way, cost in RULES:
        if all(cost(engines[place]) == min(map(cost, engines)) for place, engines in zip(answers, STATES, strict=True)):
            raise part.wrong(way, trial.name, **values)
    if len(set(places[:ENGINES])) == ENGINES and places[ENGINES:] == places[:-ENGINES]:
        raise part.wrong("in-turns", trial.name, **values)
    pairs = {(request.group, place) for request, place in zip(trace, places, strict=True)}
    groups = {group for group, _ in pairs}
    if trial.kind == "hot" and len(set(answers)) == 1 < len(counts) and len(pairs) == len(groups):
        raise part.wrong("hash", trial.name, **values)
    raise Verdict("failed", "other", OBSERVATION.format(**values), trial.name)
