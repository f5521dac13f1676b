"""The simulated services of 8.8: engines behind a router, plans and their prices, and the file that holds a plan."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.exercises.scripts import beside_the_script

FOLDER = "08-inference-engines"
cluster = beside_the_script(FOLDER, "service_cluster")
service_file = beside_the_script(FOLDER, "service_file")
service_plans = beside_the_script(FOLDER, "service_plans")
router_solution = beside_the_script(FOLDER, "solutions/my_router")
slice_clock = beside_the_script(FOLDER, "slice_clock")
step_clock = beside_the_script(FOLDER, "step_clock")
traces = beside_the_script(FOLDER, "request_traces")
engine_sim = beside_the_script(FOLDER, "engine_sim")
L4 = slice_clock.SliceClock(step_clock.Clock())
MS = 10**6


def make_engines(*roles: str, budget: int = 512) -> list[Any]:
    return [cluster.Engine(L4, budget=budget, role=role) for role in roles]


@pytest.mark.parametrize("rows", [[(0, 1)], [(100, 1), (0, 500)], [(5000, 1)] * 40])
def test_one_slice_takes_the_time_of_the_plain_clock(rows: list[tuple[int, int]]) -> None:
    assert L4.ns(rows) == step_clock.Clock().ns(rows)
    assert L4.pages() == step_clock.Clock().pages()


def test_more_slices_than_heads_hold_copies() -> None:
    clocks = [slice_clock.SliceClock(step_clock.Clock("llama-3.1-8b", "h100"), slices) for slices in (8, 16)]
    pages = [clock.pages() for clock in clocks]
    assert pages[0] < pages[1] < 1.2 * pages[0], "only the weights leave more room"


def test_a_service_of_one_request_takes_the_steps_of_its_prompt_and_answer() -> None:
    request = engine_sim.Request("r0", 5 * MS, 600, 3)
    service = cluster.run_service([request], make_engines("both"), cluster.choose_fewest_requests)
    ends = [L4.ns([(0, 512)]), L4.ns([(512, 88)]), L4.ns([(600, 1)]), L4.ns([(601, 1)])]
    assert service.requests[0].token_times_ns == [5 * MS + sum(ends[:2]), 5 * MS + sum(ends)]
    assert (service.area_ns, service.end_ns) == (sum(ends), 5 * MS + sum(ends))
    assert request.token_times_ns == [], "the trace itself is left as it was"


@pytest.mark.parametrize("roles", [["both"] * 3, ["prefill", "decode", "decode"]])
@pytest.mark.parametrize("kind", ["chat", "hot"])
def test_littles_law_holds_to_the_nanosecond(roles: list[str], kind: str) -> None:
    trace = traces.make_trace(kind, 120, 2.5)
    service = cluster.run_service(trace, make_engines(*roles), cluster.choose_fewest_tokens)
    assert service.area_ns == service.inside_ns > 0
    assert service.handed_bytes == ("decode" in roles) * L4.cache_bytes * sum(request.prompt_tokens for request in trace)
    assert all(len(request.token_times_ns) == min(2, request.answer_tokens) for request in service.requests)


def test_a_document_is_found_where_it_was_kept_and_nowhere_else() -> None:
    trace = [engine_sim.Request(f"r{number}", number * 10**10, 1000, 2, group=7, shared_tokens=900) for number in range(4)]
    service = cluster.run_service(trace, make_engines("both", "both"), cluster.RoundRobin())
    assert service.found == [0, 0, 896, 896], "whole pages of 16 tokens"
    assert service.found_percent(2) == 0


def test_an_engine_forgets_the_text_that_was_used_least_recently() -> None:
    (engine,) = make_engines("both")
    half = engine.kept_tokens // 2
    for group in (1, 2, 1, 3):
        engine.keep(engine_sim.Request("r", 0, half, 1, group=group, shared_tokens=half), half)
    token_counts = [
        engine.count_found(engine_sim.Request("r", 0, half + 1, 1, group=group, shared_tokens=half)) for group in (1, 2, 3)
    ]
    assert [tokens > 0 for tokens in token_counts] == [True, False, True]


@pytest.mark.parametrize("place", [2, -1, True, None, 0.0])
def test_a_router_that_chooses_no_engine_is_named(place: object) -> None:
    with pytest.raises(ValueError, match=r"the router chose engine .*, of engines 0 to 1"):
        cluster.run_service(traces.make_trace("chat", 3, 1), make_engines("both", "both"), lambda *_: place)


def test_a_request_without_room_is_an_error_instead_of_an_endless_wait() -> None:
    with pytest.raises(ValueError, match="1 requests wait for ever"):
        cluster.run_service([engine_sim.Request("r0", 0, 60_000, 9)], make_engines("both"), cluster.choose_fewest_requests)


@pytest.mark.parametrize(
    ("puzzle", "plan", "problem"),
    [
        (1, ("l40s", 1, 1), None),
        (1, ("l40s", 2, 1), "no-machine"),
        (3, ("l40s", 1, 1), "weights"),
        (2, ("l4", 1, 9), "slow-step"),
        (1, ("l40s", 1, 2, 2), "one-side"),
        (1, ("a10g", 1, 2, 0, 512, "round robin", "fp8"), "no-fp8"),
    ],
)
def test_plans_break_the_rule_that_is_named(puzzle: int, plan: tuple[Any, ...], problem: str | None) -> None:
    load = service_plans.make_load(puzzle)
    problems = service_plans.find_problems(load, service_plans.Plan(*plan), load.make_trace())
    assert list(problems) == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (("a10g", 1, 3), None),
        (("a10g", 1, 4), "quota"),
        (("l40s", 1, 1), "quota"),
        (("l4", 1, 3, 0, 512, "mine", "fp8"), "untested"),
    ],
)
def test_the_first_puzzle_forbids_other_machines_and_formats(plan: tuple[Any, ...], problem: str | None) -> None:
    problems = service_plans.find_forbidden(service_plans.make_load(1), service_plans.Plan(*plan))
    assert list(problems) == ([problem] if problem else [])


@pytest.mark.slow
def test_the_first_puzzle_needs_more_gpus_than_its_quota_without_the_learners_router() -> None:
    load = service_plans.make_load(1)
    trace = load.make_trace(500)
    cheapest = service_plans.list_plans(load, trace)[0]
    assert (cheapest["plan"], load.max_gpus) == ("4 of a10g, bf16", 3)
    assert service_plans.find_cheapest(load, trace) == cheapest
    for router in ("round robin", "fewest requests", "fewest tokens"):
        for budget in (256, 512, 1024):
            row = service_plans.price(load, service_plans.Plan("a10g", 1, 3, budget=budget, router=router), trace)
            assert not row["within"]
    row = service_plans.price(load, service_plans.Plan("a10g", 1, 3, router="mine"), trace, router_solution.choose)
    assert row["within"]
    assert row["plan"] == "3 of a10g, bf16, my router"


@pytest.mark.slow
@pytest.mark.parametrize("puzzle", [3, 13])
def test_a_puzzle_has_a_plan_within_its_limits(puzzle: int) -> None:
    load = service_plans.make_load(puzzle)
    trace = load.make_trace()
    best = service_plans.find_cheapest(load, trace)
    assert best["within"]
    assert best["usd_per_million"] == service_plans.list_plans(load, trace)[0]["usd_per_million"]


COMPLETE = {
    "puzzle": 1, "gpu": "l4", "slices": 1, "engines": 4, "pools": "one", "budget": 512, "router": "round robin",
    "format": "bf16", "reasons": "none",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"pools": {"prefill": 1, "decode": 3}}, None),
        ({"pools": {"prefill": 1, "decode": 2}}, "pools: 1 and 2 engines are not 4, the value of engines"),
        ({"pools": {"prefill": 1}}, "pools: {'prefill': 1} is neither one nor"),
        ({"engines": True}, "engines: True is not a whole number from 1 to 16"),
        ({"budget": 10}, "budget: 10 is not a whole number from 64 to 8,192"),
        ({"gpu": "b200"}, "gpu: b200 is not one of l4, a10g, l40s, a100, h100"),
        ({"card": "tiny"}, "card: there is no such key; the keys are puzzle, gpu"),
        ({"reasons": 3}, "reasons: 3 is not text"),
        ({"gpu": ["l4"]}, "gpu: ['l4'] is not one of"),
    ],
)
def test_a_service_file_is_read_or_its_fault_is_named(change: dict[str, Any], fault: str | None) -> None:
    file = service_file.read_service(COMPLETE | change)
    assert (file.plan is None) == bool(fault)
    if fault:
        assert len(file.faults) == 1
        assert file.faults[0].startswith(fault)


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_a_service_file_without_keys_has_a_fault(document: object) -> None:
    assert service_file.read_service(document).faults == ["it holds no keys with values, such as gpu: l4"]


def test_a_service_file_as_delivered_is_empty_and_has_no_fault() -> None:
    file = service_file.read_service(dict.fromkeys(COMPLETE) | {"puzzle": 1})
    assert (file.plan, file.faults, len(file.empty)) == (None, [], 8)
