"""The simulated engine of module 8: its clock, its requests, and what it refuses."""

from __future__ import annotations

import json
import math
from statistics import NormalDist
from types import ModuleType
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "08-inference-engines"
cards = beside_the_script(FOLDER, "cards")
step_clock = beside_the_script(FOLDER, "step_clock")
traces = beside_the_script(FOLDER, "request_traces")
engine_sim: ModuleType = beside_the_script(FOLDER, "engine_sim")
paged_engine: ModuleType = beside_the_script("shared", "paged_engine")


def one_after_the_other(waiting: list[Any], running: list[Any], pool: Any, budget: int, _max_requests: int) -> dict[str, int]:
    if not running:
        running.append(waiting.pop(0))
    (request,) = running
    tokens = min(budget, request.prompt_tokens + request.generated_tokens - request.computed_tokens)
    assert pool.grow(request, request.computed_tokens + tokens)
    return {request.name: tokens}


def count_parameters(card: Any) -> int:
    """Count the weights of a Llama: attention, feed-forward blocks and norms of each layer, two tables, and the last norm."""
    attention = card.width * card.head_dim * 2 * (card.heads + card.kv_heads)
    experts = max(1, card.experts)
    router = card.experts * card.width
    layer = attention + experts * 3 * card.width * card.hidden + router + 2 * card.width
    return int(card.layers * layer + 2 * card.vocabulary * card.width + card.width)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *((f"llama-{name}", 0) for name in ("2-7b", "3.1-8b", "3.1-70b", "3.1-405b")),
        *((name, 0) for name in ("mistral-7b", "mixtral-8x7b")),
        ("qwen2.5-72b", 80 * (64 + 2 * 8) * 128),  # biases of query, key and value
        ("qwen3-235b", 94 * 2 * 128),  # norms of queries and keys
    ],
)
def test_parameters_of_a_card_are_those_of_its_shape(name: str, other: int) -> None:
    card = cards.CARDS[name]
    assert count_parameters(card) + other == card.parameters


def test_tables_of_traces_are_quantiles() -> None:
    document = json.loads((find_course({}).exercises / FOLDER / "request_traces.json").read_text(encoding="utf-8"))
    places = [(number + 0.5) / 512 for number in range(512)]
    assert traces.read_table("gaps") == tuple(round(-math.log(1 - place) * 1_000_000) for place in places)
    for name, (mean, deviation) in document["lognormal"].items():
        expected = [max(1, round(math.exp(mean + deviation * NormalDist().inv_cdf(place)))) for place in places]
        assert max(abs(a - b) for a, b in zip(traces.read_table(name), expected, strict=True)) <= 1, name


@pytest.mark.parametrize("kind", traces.KINDS)
def test_make_trace_is_the_same_again_and_ordered_by_time(kind: str) -> None:
    trace = traces.make_trace(kind, 300, 2.0)
    assert [vars(request) for request in trace] == [vars(request) for request in traces.make_trace(kind, 300, 2.0)]
    arrivals = [request.arrived_ns for request in trace]
    assert arrivals == sorted(arrivals)
    assert 0.5 < 300 / (arrivals[-1] / 1e9) / 2 < 1.5  # the last turns of talks come late
    assert all(0 < request.prompt_tokens <= 8192 and 0 < request.answer_tokens <= 512 for request in trace) or kind == "talks"
    assert all(request.shared_tokens < request.prompt_tokens for request in trace)


def test_clock_is_bound_by_memory_for_one_token_and_by_speed_for_a_prompt() -> None:
    clock = step_clock.Clock("llama-3.1-8b", "l4")
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    assert (clock.weight_bytes, clock.cache_bytes, clock.pages()) == (weights, 131_072, 2641)
    assert clock.ns([(999, 1)]) == 2_000_000 + math.ceil((weights + 1000 * 131_072) / 240)
    scores = 4 * 32 * 32 * 128 * (2048 * 2049 // 2)
    assert clock.ns([(0, 2048)]) == 2_000_000 + math.ceil((weights * 2048 + scores) / 72_600)
    with pytest.raises(ValueError, match="mixtral-8x7b has them"):
        step_clock.Clock("mixtral-8x7b")


def test_fit_shares_finds_the_shares_of_a_clock_again() -> None:
    clock = step_clock.Clock(memory_percent=73, compute_percent=41, overhead_ns=150_000)
    points = []
    for tokens in (1, 64, 256, 1024, 4096):
        read, computed = clock.read_ns([(0, tokens)]), clock.compute_ns([(0, tokens)])
        points.append((read * clock.bytes_per_s / 1e9, computed * clock.operations_per_s / 1e9, clock.ns([(0, tokens)]) / 1e9))
    fit = step_clock.fit_shares(points, clock.sheet)
    assert (fit["memory_percent"], fit["compute_percent"]) == (73, 41)
    assert fit["overhead_us"] == pytest.approx(150, rel=0.01)
    assert fit["off_percent"] < 0.01


def test_simulate_times_a_request_by_hand() -> None:
    clock = step_clock.Clock()
    trace = [engine_sim.Request("a", 5, 40, 3), engine_sim.Request("b", 6, 10, 1)]
    run = engine_sim.simulate(trace, one_after_the_other, clock, pages=10, budget=32, max_requests=1)
    steps = [[(0, 32)], [(32, 8)], [(40, 1)], [(41, 1)], [(0, 10)]]
    times = [5]
    for rows in steps:
        times.append(times[-1] + clock.ns(rows))
    assert [request.token_times_ns for request in run.requests] == [times[2:5], times[5:]]
    assert [step.start_ns for step in run.steps] == times[:-1]
    assert run.end_ns == times[-1]
    assert trace[0].computed_tokens == 0, "the trace is not changed"
    figures = engine_sim.describe(run.requests, run.end_ns, ttft_ms=(times[2] - 5) / 1e6, tpot_ms=1000)
    assert figures["goodput_percent"] == 50
    assert figures["sim_longest_pause_ms"] == max(times[3] - times[2], times[4] - times[3]) / 1e6


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        ([], "a plan is a dictionary, not list"),
        ({"b": 1}, "b is in the plan, but does not run"),
        ({"a": 41}, "a gets 41 tokens, but has 40 to compute"),
        ({"a": 1.0}, r"a gets 1\.0 tokens"),
        ({"a": 20}, "a holds 0 pages, but 20 tokens need 2"),
        ({}, "no progress: 0 wait, 1 run, 10 pages are free"),
    ],
)
def test_simulate_refuses_a_plan_that_no_engine_can_compute(plan: Any, text: str) -> None:
    def schedule(waiting: list[Any], running: list[Any], *_: object) -> Any:
        running += waiting
        waiting.clear()
        return plan

    with pytest.raises(engine_sim.PlanError, match=text):
        engine_sim.simulate(
            [engine_sim.Request("a", 0, 40, 3)], schedule, step_clock.Clock(), pages=10, budget=64, max_requests=4
        )


def test_simulate_refuses_a_request_that_is_in_no_list() -> None:
    def lose(waiting: list[Any], *_: object) -> dict[str, int]:
        waiting.clear()
        return {}

    with pytest.raises(engine_sim.PlanError, match="a is in no list after planning"):
        engine_sim.simulate([engine_sim.Request("a", 0, 1, 1)], lose, step_clock.Clock(), pages=1, budget=1, max_requests=1)


class KnownBeginning:
    """A prefix cache of 20 pages that finds the first page of every request."""

    def __init__(self) -> None:
        self.tables: dict[str, list[int]] = {}
        self.computed_tokens: list[int] = []

    def start(self, name: str, tokens: list[int], _salt: str) -> int:
        self.tables[name] = list(range(-(-len(tokens) // 16)))
        return 16

    def grow(self, name: str, length: int) -> bool:
        if -(-length // 16) > 20:
            return False
        self.tables[name] = list(range(-(-length // 16)))
        return True

    def computed(self, _name: str, tokens: list[int]) -> None:
        self.computed_tokens.append(len(tokens))

    def end(self, name: str) -> None:
        del self.tables[name]

    def pages(self, name: str) -> list[int]:
        return self.tables[name]

    def count_free(self) -> int:
        return 20 - max(map(len, self.tables.values()), default=0)


def test_engine_computes_only_what_its_prefix_cache_has_not_found() -> None:
    cache, texts = KnownBeginning(), {"a": list(range(40)), "b": list(range(400))}
    pool = paged_engine.PrefixPool(cache, 16, texts)
    engine = paged_engine.Engine(paged_engine.prompts_first, pool, budget=64, max_requests=4)
    engine.waiting.append(engine_sim.Request("a", 0, 40, 1, max_answer_tokens=1))
    step = engine.plan_step(0)
    assert (step.plan, step.past) == ({"a": 24}, {"a": 16})
    assert [request.name for request in engine.finish_step(step, 1)] == ["a"]
    assert cache.computed_tokens == [40]
    assert (cache.tables, pool.table("a"), pool.count_free()) == ({}, [], 20)
    assert not pool.grow(engine_sim.Request("b", 0, 400, 1), 400)
    assert cache.tables == {}, "a request that was refused holds no page"
