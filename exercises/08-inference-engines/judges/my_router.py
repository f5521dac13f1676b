"""Judge my_router.py of 8.8 by goodput on three traces, compared with simpler routers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
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
        "{good:.1f} % of {name} meet the limits, and {best:.1f} % are possible: you found {found:.0f} % of the tokens, and "
        "your engines get {least} to {most} requests each. Compare what a request has to wait for on each engine",
    ),
    "in-turns": Way(
        "{good:.1f} % of {name} meet the limits, but {best:.1f} % are possible: your engines get {least} to {most} requests "
        "each, whatever is in them",
        ("return missing + engine.load_tokens()", "return (place - int(request.name[1:])) % len(engines)"),
    ),
}


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
            takes_worst = part.call(choose, trace[0], [_Still(0, 10), _Still(0, 9000), _Still(0, 500)]) == 1
            _name(part, trial, trace, service, best, takes_worst=takes_worst)
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
class _Still:
    """An engine with a fixed state."""

    tokens: int
    load: int

    def count_found(self, _request: Any) -> int:
        return self.tokens

    def load_tokens(self) -> int:
        return self.load

    def requests(self) -> int:
        return self.load


def _name(part: Part, trial: Trial, trace: Any, service: Service, best: Service, *, takes_worst: bool) -> None:
    """Raise the verdict if the router keeps too few requests within their limits."""
    good, possible = (one.goodput_percent(trial.ttft_ms, trial.tpot_ms) for one in (service, best))
    counts = Counter(service.engine_of)
    most, least = max(counts.values()), min(counts[place] for place in range(ENGINES))
    values = {
        "good": good, "best": possible, "name": trial.name, "share": most / len(trace), "most": most, "least": least,
        "found": service.found_percent(), "possible": best.found_percent(),
    }  # fmt: skip
    if takes_worst or most > 0.6 * len(trace):
        raise part.wrong("worst" if takes_worst else "most-found", trial.name, **values)
    if most - least <= 1:
        raise part.wrong("in-turns", trial.name, **values)
    engines_of_group: dict[int, set[int]] = {}
    for request, place in zip(trace, service.engine_of, strict=True):
        engines_of_group.setdefault(request.group, set()).add(place)
    if all(len(places) == 1 for places in engines_of_group.values()):
        way = "hash" if trial.kind == "hot" else "requests-for-tokens"
        raise part.wrong(way, trial.name, output=service.engine_of, **values)
    if service.found_percent() < best.found_percent() - 10:
        raise part.wrong("load-only", trial.name, **values)
    raise part.wrong("requests-for-tokens", trial.name, output=service.engine_of, **values)
