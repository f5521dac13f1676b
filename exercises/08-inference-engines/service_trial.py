"""The simulations of 8.8: a queue, routers in front of four engines, one pool or two, and an overloaded service."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from paged_engine import PAGE, Request
from request_traces import make_trace, read_table
from service_cluster import ROUTERS, Choose, Engine, Service, choose_fewest_requests, run_service
from service_plans import Load, Plan, list_offers, price
from slice_clock import SliceClock
from step_clock import Clock

USES = (0.2, 0.4, 0.6, 0.8, 0.9)
TOLERATED_USE = 0.8  # above it, the mean of even 200,000 requests is not stable
QUEUE_REQUESTS = 200_000
HOT = {"kind": "hot", "per_s": 8.5, "ttft_ms": 2000, "tpot_ms": 100}
ENGINES, BUDGET, PREFILL_BUDGET = 4, 512, 8192
POOL_TTFT_MS, POOL_TPOT_MS, POOL_GOOD_PERCENT = 3000, (70, 75, 80, 90, 150), 90
SPLITS = {"one pool": 0, "1 + 3": 1, "2 + 2": 2, "3 + 1": 3}
_RATE_STEP, _MAX_RATE_STEPS = 0.25, 128
Row = dict[str, Any]


def list_service_s(gpu: str = "l4") -> list[float]:
    """Return the seconds that prompts of chats take on one GPU: 512 equally likely times, from the simulated clock."""
    clock = Clock(gpu=gpu)
    return [clock.ns([(0, min(8192, tokens))]) / 1e9 for tokens in read_table("chat")]


def find_rate(use: float, service_s: Sequence[float]) -> float:
    """Return how many requests a second keep one server busy for this share of the time."""
    return use * len(service_s) / sum(service_s)


def simulate_wait_s(per_s: float, service_s: Sequence[float], count: int = QUEUE_REQUESTS) -> float:
    """Return the mean seconds that `count` requests wait for one server, which serves them in the order of their arrival."""
    source, gaps = random.Random(5), read_table("gaps")
    mean_gap = sum(gaps) / len(gaps)
    now = free = total = 0.0
    for _ in range(count):
        now += gaps[source.randrange(512)] / mean_gap / per_s
        begin = max(now, free)
        total += begin - now
        free = begin + service_s[source.randrange(len(service_s))]
    return total / count


def run_four(trace: Sequence[Request], choose: Choose, prefill: int = 0) -> Service:
    """Return the trace after four L4s have served it with Llama-3.1-8B; `prefill` of the L4s compute only prompts."""
    clock = SliceClock(Clock())
    roles = ["prefill"] * prefill + ["decode" if prefill else "both"] * (ENGINES - prefill)
    budget = PREFILL_BUDGET if prefill else BUDGET
    return run_service(trace, [Engine(clock, budget=budget, role=role) for role in roles], choose)


def describe_router(name: str, service: Service) -> Row:
    """Return the row of one router on the trace of hot documents."""
    return {
        "router": name, "found_percent": service.found_percent(), "sim_ttft_p99_ms": service.ttft_ms(99),
        "goodput_percent": service.goodput_percent(HOT["ttft_ms"], HOT["tpot_ms"]),
        "most_percent": 100 * max(map(service.engine_of.count, range(ENGINES))) / len(service.engine_of),
    }  # fmt: skip


def list_routers(requests: int) -> tuple[list[Row], Service]:
    """Return the rows of the course's routers, and what round robin served."""
    trace = make_trace(HOT["kind"], requests, HOT["per_s"])
    services = {name: run_four(trace, make()) for name, make in ROUTERS.items()}
    return [describe_router(name, service) for name, service in services.items()], services["round robin"]


def route_with_yours(_world: None, requests: int, load: Mapping[str, Any], plan: Mapping[str, Any] | None) -> Row:
    """Return the row of the learner's my_router.py on hot documents, and the costs of a plan with this router."""
    import my_router

    trace = make_trace(HOT["kind"], requests, HOT["per_s"])
    row = describe_router("yours", run_four(trace, my_router.choose))
    if plan is None:
        return {"row": row, "plan": None}
    service_load = Load(**load)
    return {"row": row, "plan": price(service_load, Plan(**plan), service_load.make_trace(requests), my_router.choose)}


def list_pools(requests: int) -> tuple[list[Row], int]:
    """Return the highest rate that four L4s serve within limits, for each split into pools and each limit on TPOT.

    Also return the error of Little's law, in nanoseconds over all services.
    """
    services: dict[tuple[str, int], Service] = {}
    off = 0

    def serve(split: str, steps: int) -> Service:
        nonlocal off
        if (split, steps) not in services:
            trace = make_trace("chat", requests, steps * _RATE_STEP)
            service = services[split, steps] = run_four(trace, choose_fewest_requests, SPLITS[split])
            off += abs(service.area_ns - service.inside_ns)
        return services[split, steps]

    rows = []
    for tpot_ms in POOL_TPOT_MS:
        for split in SPLITS:
            low, high = 0, _MAX_RATE_STEPS
            while high - low > 1:
                middle = (low + high) // 2
                is_good = serve(split, middle).goodput_percent(POOL_TTFT_MS, tpot_ms) >= POOL_GOOD_PERCENT
                low, high = (middle, high) if is_good else (low, middle)
            rows.append({"tpot_ms": tpot_ms, "pools": split, "sim_per_s_per_gpu": low * _RATE_STEP / ENGINES})
    return rows, off


def find_overload_percent(requests: int) -> float:
    """Return the goodput of four L4s with 40 chats a second, which is several times as many as they can answer."""
    trace = make_trace("chat", requests, 40)
    return run_four(trace, choose_fewest_requests).goodput_percent(POOL_TTFT_MS, POOL_TPOT_MS[-1])


def describe_means(load: Load, service: Service) -> Row:
    """Return the means of a served trace: rate, TTFT, TPOT, lengths, and how many requests were in the service at the same
    time."""
    requests, count = service.requests, len(service.requests)
    ttft_ns = sum(request.token_times_ns[0] - request.arrived_ns for request in requests)
    gaps = sum(request.answer_tokens - 1 for request in requests)
    between_ns = sum(request.token_times_ns[-1] - request.token_times_ns[0] for request in requests)
    return {
        "load": load.kind, "per_s": count / (service.end_ns / 1e9), "ttft_s": ttft_ns / count / 1e9,
        "tpot_s": between_ns / gaps / 1e9, "prompt": round(sum(request.prompt_tokens for request in requests) / count),
        "answer": round(sum(request.answer_tokens for request in requests) / count),
        "inside": service.area_ns / service.end_ns,
    }  # fmt: skip


def list_fleets(load: Load, trace: Sequence[Request], plans: Sequence[Row]) -> list[Row]:
    """Return a row for each plan: service times of prompts, the longest wait, and the room for tokens in the cache.

    TPOT counts as its limit, and TTFT as its limit less the mean service time. Nothing is found in a cache.
    """
    fleets = []
    for plan in plans:
        offer = next(one for one in list_offers() if (one.gpu, one.slices) == (plan["gpu"], plan["slices"]))
        clock = offer.clock(load.card, plan["format"])
        service_s = [clock.ns([(0, request.prompt_tokens)]) / 1e9 for request in trace]
        fleets.append({
            "service_s": service_s, "max_wait_s": load.ttft_ms / 1e3 - sum(service_s) / len(service_s),
            "cache_tokens": Engine(clock, budget=BUDGET).free_pages * PAGE,
        })  # fmt: skip
    return fleets


def size_with_yours(load: Row, means: Row, fleet: Row) -> int | None:
    """Return the number of engines that the learner's `engines_needed` returns. Return None if it is not written, or if the
    mean service time alone reaches the limit of the time to first token."""
    import my_capacity

    if not hasattr(my_capacity, "engines_needed") or fleet["max_wait_s"] <= 0:
        return None
    ttft_s, tpot_s = load["ttft_ms"] / 1e3, load["tpot_ms"] / 1e3
    held = float(my_capacity.tokens_held(load["per_s"], ttft_s, tpot_s, means["prompt"], means["answer"]))
    return int(my_capacity.engines_needed(load["per_s"], fleet["service_s"], fleet["max_wait_s"], held, fleet["cache_tokens"]))


def compute_with_yours(_world: None, service_s: list[float], means: Row, load: Row, fleets: list[Row]) -> Row:
    """Return the results of the learner's my_capacity.py for the queues, for a service with these means, and for fleets."""
    import my_capacity

    waits = [float(my_capacity.wait_s(find_rate(use, service_s), service_s)) for use in USES]
    facts = means["per_s"], means["ttft_s"], means["tpot_s"]
    answer = means["answer"]
    return {
        "waits_ms": [1e3 * wait for wait in waits], "inside": float(my_capacity.count_inside(*facts, answer)),
        "tokens_held": float(my_capacity.tokens_held(*facts, means["prompt"], answer)),
        "usd_per_million": float(my_capacity.usd_per_million(1.0, means["per_s"], answer, 100)),
        "engines": [size_with_yours(load, means, fleet) for fleet in fleets],
    }  # fmt: skip
