"""Plans for a service: machines with their prices, loads with their limits, and what a plan costs on a simulated clock."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import gpus
from cards import CARDS
from paged_engine import PAGE, Request
from request_traces import make_trace
from service_cluster import MAX_REQUESTS, ROUTERS, Choose, Engine, Service, run_service
from slice_clock import FORMATS, SliceClock
from step_clock import GPUS, Clock

RENTED = ("l4", "a10g", "l40s", "a100", "h100")
MINE = "mine"
PLAN_ROUTERS = ("round robin", "fewest requests", "fewest tokens", MINE)  # mine is the learner's router
BUDGETS = (256, 1024)
MAX_ENGINES, MIN_BUDGET, MAX_BUDGET = 16, MAX_REQUESTS, 8192
MAX_TIMES = 1.25  # of the cheapest plan's price
_TIMES_INSIDE, _ANSWER_TOKENS = 5, 140


@dataclass(frozen=True)
class Offer:
    """A machine that can be rented, with `slices` GPUs that serve one engine."""

    machine: str
    gpu: str
    slices: int
    usd_per_hour: float

    def clock(self, card: str, number_format: str) -> SliceClock:
        """Return the clock of an engine on this machine."""
        clock = Clock(card, self.gpu)
        link = "nvlink" if clock.sheet.link.startswith("NVLink") else "pcie"
        return SliceClock(clock, self.slices, link, number_format)


def list_offers() -> list[Offer]:
    """Return the cheapest machine on demand for each GPU and number of GPUs."""
    offers: dict[tuple[str, int], Offer] = {}
    for gpu in RENTED:
        sheet = gpus.find(GPUS[gpu])
        for machine, row in (sheet.aws.get("types", {}) if sheet else {}).items():
            if row.get("usd_per_hour") and row["gpus"]:
                offer = Offer(machine, gpu, row["gpus"], float(row["usd_per_hour"]))
                cheapest = offers.setdefault((gpu, offer.slices), offer)
                offers[gpu, offer.slices] = min(cheapest, offer, key=lambda one: one.usd_per_hour)
    return list(offers.values())


@dataclass(frozen=True)
class Load:
    """Requests of one kind, `per_s` in a second, of which `good_percent` must meet the limits on TTFT and TPOT.

    The account may rent `max_gpus` GPUs of the kinds in `gpus`. The answers were tested with weights in `formats`.
    """

    kind: str
    per_s: float
    ttft_ms: int
    tpot_ms: int
    good_percent: int = 95
    card: str = "llama-3.1-8b"
    gpus: Sequence[str] = RENTED
    formats: Sequence[str] = tuple(FORMATS)
    max_gpus: int = 8 * MAX_ENGINES

    def count_least(self) -> int:
        """Return how many requests a trace needs at least: five times as many as are in the service at the same time.

        A shorter trace ends before the service is as full as it is in the long run.
        """
        inside_s = (self.ttft_ms + _ANSWER_TOKENS * self.tpot_ms) / 1e3
        return round(_TIMES_INSIDE * self.per_s * inside_s)

    def make_trace(self, count: int = 0) -> list[Request]:
        """Return `count` requests, or the minimum number if that is larger."""
        return make_trace(self.kind, count or max(400, self.count_least()), self.per_s)


def make_load(puzzle: int) -> Load:
    """Return the load of a puzzle, 1 to 99."""
    if puzzle == 1:
        return Load("hot", 7, 2000, 80, gpus=("l4", "a10g"), formats=("bf16",), max_gpus=3)
    source = random.Random(puzzle)
    kind, card = source.choice(("chat", "documents")), source.choice(("llama-3.1-8b", "llama-3.1-8b", "llama-3.1-70b"))
    is_large = card == "llama-3.1-70b"
    per_s = source.choice((3, 4, 6, 8) if kind == "chat" and not is_large else (1, 2, 3))
    ttft_ms = source.choice((1000, 2000)) * (1 if kind == "chat" else 2) * (2 if is_large else 1)
    return Load(kind, per_s, ttft_ms, source.choice((60, 80) if is_large else (30, 50, 80)), card=card)


@dataclass(frozen=True)
class Plan:
    """A service: its machines, pools and settings. `prefill` of its engines compute only prompts; 0 means one pool."""

    gpu: str
    slices: int
    engines: int
    prefill: int = 0
    budget: int = 512
    router: str = "fewest tokens"
    number_format: str = "bf16"

    @cached_property
    def offer(self) -> Offer | None:
        """Return the machine, or None if there is none with that GPU and that number of GPUs."""
        return next((offer for offer in list_offers() if (offer.gpu, offer.slices) == (self.gpu, self.slices)), None)

    def run(self, load: Load, trace: Sequence[Request], choose: Choose | None = None) -> Service:
        """Return the trace after this plan has served it. The plan must have no problems. `choose` replaces its router."""
        if self.offer is None:
            raise ValueError(f"no machine has {self.slices} {self.gpu}")
        clock = self.offer.clock(load.card, self.number_format)
        roles = ["prefill"] * self.prefill + ["decode" if self.prefill else "both"] * (self.engines - self.prefill)
        engines = [Engine(clock, budget=self.budget, role=role) for role in roles]
        return run_service(trace, engines, choose or ROUTERS[self.router]())


def find_problems(load: Load, plan: Plan, trace: Sequence[Request]) -> dict[str, str]:
    """Return the rules that a plan breaks, each with a sentence that names the numbers."""
    if plan.offer is None:
        sizes = ", ".join(str(offer.slices) for offer in list_offers() if offer.gpu == plan.gpu)
        return {"no-machine": f"no machine has {plan.slices} {plan.gpu}: there are machines with {sizes}"}
    clock, problems = plan.offer.clock(load.card, plan.number_format), {}
    if plan.number_format == "fp8" and clock.clock.sheet.fp8 is None:
        problems["no-fp8"] = f"{plan.gpu} has no units for fp8"
    if not clock.pages():
        weights_gb = 2 * CARDS[load.card].parameters * FORMATS[plan.number_format] / 100 / 1e9
        memory_gb = plan.slices * clock.clock.sheet.memory_gb
        problems["weights"] = f"the weights have {weights_gb:.1f} GB, but {plan.slices} x {plan.gpu} has {memory_gb:g} GB"
        return problems
    if plan.prefill >= plan.engines:
        problems["one-side"] = f"of {plan.engines} engines, {plan.prefill} compute prompts, and none computes answers"
    step_ms = clock.ns([(0, 1)]) / 1e6
    if step_ms > load.tpot_ms:
        problems["slow-step"] = f"a step of one token takes {step_ms:.1f} ms, but TPOT may be at most {load.tpot_ms} ms"
    longest = max(request.prompt_tokens + request.answer_tokens for request in trace)
    if (tokens := Engine(clock, budget=plan.budget).free_pages * PAGE) < longest:
        problems["small-cache"] = f"the longest request has {longest:,} tokens, but an engine has pages for only {tokens:,}"
    return problems


def find_forbidden(load: Load, plan: Plan) -> dict[str, str]:
    """Return the parts of a plan that the load does not permit, each with a sentence."""
    problems = {}
    if plan.gpu not in load.gpus or plan.engines * plan.slices > load.max_gpus:
        problems["quota"] = (
            f"the account may rent {load.max_gpus} GPUs of {' or '.join(load.gpus)}, and the plan has "
            f"{plan.engines * plan.slices} of {plan.gpu}"
        )
    if plan.number_format not in load.formats:
        problems["untested"] = f"the answers were tested in {' or '.join(load.formats)}, not in {plan.number_format}"
    return problems


def price(load: Load, plan: Plan, trace: Sequence[Request], choose: Choose | None = None) -> dict[str, Any]:
    """Return the row of a plan without problems: its costs, and the percentage of requests within the limits.

    `choose` replaces its router.
    """
    service = plan.run(load, trace, choose)
    usd_per_hour = plan.engines * plan.offer.usd_per_hour if plan.offer else 0.0
    good, hours = service.good_tokens(load.ttft_ms, load.tpot_ms), trace[-1].arrived_ns / 3.6e12
    percent = service.goodput_percent(load.ttft_ms, load.tpot_ms)
    return {
        "plan": describe(plan), "gpu": plan.gpu, "slices": plan.slices, "engines": plan.engines, "format": plan.number_format,
        "goodput_percent": percent, "usd_per_hour": usd_per_hour, "within": percent >= load.good_percent,
        "usd_per_million": usd_per_hour * hours / good * 1e6 if good else None,
        "handed_mb_per_s": service.handed_bytes / 1e6 / (trace[-1].arrived_ns / 1e9),
    }  # fmt: skip


def describe(plan: Plan) -> str:
    """Return a plan in a few words."""
    machine = plan.gpu if plan.slices == 1 else f"{plan.slices} x {plan.gpu}"
    pools = f" ({plan.prefill} + {plan.engines - plan.prefill})" if plan.prefill else ""
    router = ", my router" if plan.router == MINE else ""
    return f"{plan.engines} of {machine}{pools}, {plan.number_format}{router}"


def list_plans(load: Load, trace: Sequence[Request]) -> list[dict[str, Any]]:
    """Return a plan for each machine and format that the load permits, the cheapest first.

    It has the fewest engines that meet the limits in one pool, with the router "fewest tokens", even above `max_gpus`.
    """
    pairs = [(offer, number_format) for offer in _list_allowed(load) for number_format in load.formats]
    rows = [row for pair in pairs if (row := _find_fewest(load, trace, *pair, MAX_ENGINES))]
    return sorted(rows, key=lambda row: row["usd_per_million"])


def find_cheapest(load: Load, trace: Sequence[Request]) -> dict[str, Any] | None:
    """Return the first plan of `list_plans`, skipping those that cost too much per hour. Return None if there is no plan."""
    best: dict[str, Any] | None = None
    for offer in sorted(_list_allowed(load), key=lambda one: one.usd_per_hour):
        for number_format in load.formats:
            engines = MAX_ENGINES if best is None else int(1.05 * best["usd_per_hour"] / offer.usd_per_hour)
            row = _find_fewest(load, trace, offer, number_format, min(MAX_ENGINES, engines)) if engines else None
            if row and (best is None or row["usd_per_million"] < best["usd_per_million"]):
                best = row
    return best


def _list_allowed(load: Load) -> list[Offer]:
    return [offer for offer in list_offers() if offer.gpu in load.gpus and offer.slices <= load.max_gpus]


def _find_fewest(
    load: Load, trace: Sequence[Request], offer: Offer, number_format: str, max_engines: int
) -> dict[str, Any] | None:
    """Return the plan with the fewest engines and any of BUDGETS, or None if `max_engines` are too few."""
    plan = Plan(offer.gpu, offer.slices, 1, number_format=number_format)
    if find_problems(load, plan, trace):
        return None

    def try_all(engines: int) -> dict[str, Any] | None:
        rows = (price(load, replace(plan, engines=engines, budget=budget), trace) for budget in BUDGETS)
        return next((row for row in rows if row["within"]), None)

    low, high = 0, 1
    while (best := try_all(high)) is None:
        if high == max_engines:
            return None
        low, high = high, min(2 * high, max_engines)
    while high - low > 1:
        middle = (low + high) // 2
        if (row := try_all(middle)) is None:
            low = middle
        else:
            high, best = middle, row
    return best
