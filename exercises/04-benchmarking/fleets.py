"""A service that generates tokens day and night: what it may rent, the demand of each hour, and what a plan costs."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOURS = 24
PUZZLES = 200
_SHAPE = (3, 2, 2, 1, 1, 2, 3, 5, 7, 9, 10, 10, 9, 9, 10, 10, 9, 8, 7, 7, 6, 5, 4, 3)  # of the demand, in tenths of the peak
_CARDS = {"T4": (0.526, 400.0), "L4": (0.8048, 900.0), "A10G": (1.006, 1300.0), "L40S": (1.861, 2800.0)}
"""On-demand dollars an hour of the smallest AWS instance with that card (gpus.json), and tokens/s at a large batch. The
tokens/s are made up; you measure yours in 4.3."""


@dataclass(frozen=True)
class Offer:
    """An instance with one GPU. `batches` has the tokens/s and the 99th percentile of TPOT in ms for each batch size.

    On spot it is interrupted `interruptions_per_day` times a day. Each time, `minutes_lost` minutes are paid and lost.
    """

    gpu: str
    usd_per_hour: float
    spot_usd_per_hour: float
    interruptions_per_day: float
    minutes_lost: float
    batches: Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class Service:
    """A day of a service: the instances on offer, the tokens/s that users ask for in each hour, the highest TPOT in ms, and the
    highest share (0 to 1) of an hour's tokens/s that may depend on spot instances."""

    offers: tuple[Offer, ...]
    demand: tuple[float, ...]
    limit_ms: float
    spot_share: float

    def describe(self) -> tuple[list[dict[str, Any]], list[float], float, float]:
        """Return the arguments of the learner's function."""
        return [asdict(offer) for offer in self.offers], list(self.demand), self.limit_ms, self.spot_share


@dataclass(frozen=True)
class Plan:
    """The instances that are rented: a GPU, the batch size, and the number of instances in each hour, on demand and on spot."""

    gpu: str
    batch: int
    on_demand: tuple[int, ...]
    spot: tuple[int, ...]


class Fault(Exception):
    """A plan that does not serve the users. `kind` names the rule that it breaks."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def make_service(puzzle: int) -> Service:
    """Return a service whose numbers follow from the puzzle's number. The tokens/s of its cards are made up."""
    chance = random.Random(puzzle)
    offers = []
    for gpu, (usd, usual_speed) in _CARDS.items():
        speed = usual_speed * chance.uniform(0.8, 1.25)
        start_ms = 1000 * 8 / speed * chance.uniform(1.5, 2.5)
        batches = {}
        for batch in (8, 16, 32, 64, 128):
            tpot_ms = start_ms * (1 + batch / 40)
            share = 0.85 if batch == 128 and chance.random() < 0.5 else 1.0  # the caches no longer fit, so requests wait
            batches[batch] = (round(share * 1000 * batch / tpot_ms, 1), round(1.2 * tpot_ms / share, 1))
        spot = round(usd * chance.uniform(0.33, 0.73), 4)
        offers.append(Offer(gpu, usd, spot, chance.choice([1, 2, 6, 12, 24]), chance.choice([3, 6, 10, 20]), batches))
    peak = chance.uniform(8000, 40000)
    demand = tuple(round(peak * tenths / 10 * chance.uniform(0.9, 1.1), 1) for tenths in _SHAPE)
    min_ms = min(tpot_ms for offer in offers for _, tpot_ms in offer.batches.values())
    limit_ms = max(min_ms, chance.choice([40.0, 60.0, 90.0, 150.0]))
    return Service(tuple(offers), demand, limit_ms, chance.choice([0.25, 0.5, 0.75]))


def working_share(offer: Offer) -> float:
    """Return the share of the day, 0 to 1, in which a spot instance generates tokens."""
    return 1 - offer.interruptions_per_day * offer.minutes_lost / (24 * 60)


def read_plan(service: Service, answer: object) -> Plan:
    """Return the learner's answer as a plan. Raises Fault if it does not have the form of a plan."""
    if not isinstance(answer, Mapping) or set(answer) != {"gpu", "batch", "on_demand", "spot"}:
        raise Fault("form", f"it returned {answer!r:.80}: return a dict with gpu, batch, on_demand and spot")
    offer = next((offer for offer in service.offers if offer.gpu == answer["gpu"]), None)
    if offer is None or answer["batch"] not in offer.batches:
        raise Fault("form", f"no offer has {answer['gpu']!r:.30} with batch {answer['batch']!r:.30}")
    for key in ("on_demand", "spot"):
        counts = answer[key]
        if not isinstance(counts, Sequence) or len(counts) != HOURS or not all(type(n) is int and n >= 0 for n in counts):
            raise Fault("form", f"{key} must be a list of {HOURS} whole numbers; it is {counts!r:.60}")
    return Plan(offer.gpu, answer["batch"], tuple(answer["on_demand"]), tuple(answer["spot"]))


def price_plan(service: Service, plan: Plan) -> float:
    """Return the dollars that a plan costs in a day. Raises Fault if it misses the limit or an hour's demand."""
    offer = next(offer for offer in service.offers if offer.gpu == plan.gpu)
    speed, tpot_ms = offer.batches[plan.batch]
    if tpot_ms > service.limit_ms:
        raise Fault(
            "limit", f"{plan.gpu} with batch {plan.batch} has a TPOT of {tpot_ms:g} ms; the limit is {service.limit_ms:g}"
        )
    for hour, (demand, steady, spot) in enumerate(zip(service.demand, plan.on_demand, plan.spot, strict=True)):
        instances_text = f"{steady} on demand and {spot} on spot with {speed:,.0f} tokens/s each"
        text = f"hour {hour}, {demand:,.0f} tokens/s of demand, {instances_text}"
        if (steady + spot) * speed < demand - 1e-6:
            raise Fault("short", f"{text}: together {(steady + spot) * speed:,.0f} tokens/s")
        if steady * speed < (min_tokens := (1 - service.spot_share) * demand) - 1e-6:
            raise Fault("steady", f"{text}: {min_tokens:,.0f} tokens/s must be on demand")
        if steady * speed + spot * speed * working_share(offer) < demand - 1e-6:
            raise Fault("lost", f"{text}: an instance on spot works only {working_share(offer):.0%} of the time")
    return sum(plan.on_demand) * offer.usd_per_hour + sum(plan.spot) * offer.spot_usd_per_hour


def read_day(puzzle: int) -> tuple[list[dict[str, Any]], float]:
    """Return a row for each of two simple plans for the puzzle's day, and the cost of the cheapest of all plans in dollars.

    All figures are recorded in days.json.
    """
    recorded = json.loads(Path(__file__).with_name("days.json").read_text(encoding="utf-8"))[str(puzzle)]
    rows = []
    for title, key in (("peak all day, on demand", "peak"), ("by the hour, on demand", "hourly")):
        gpu, batch, hours, usd = recorded[key]
        costs = {"usd_per_day": usd, "usd_per_million": _per_million(make_service(puzzle), usd)}
        rows.append({"plan": title, **costs, "gpu": gpu, "batch": batch, "on_demand_hours": hours, "spot_hours": 0})
    return rows, recorded["best"]


def use_plan(_world: object, puzzle: int) -> dict[str, Any]:
    """Return the row of the learner's plan with its cost in dollars, or the rule that the plan breaks."""
    import my_fleet

    service = make_service(puzzle)
    try:
        plan = read_plan(service, my_fleet.plan(*service.describe()))
        return {"fault": None, "hours": list_capacities(service, plan), **describe_plan(service, plan)}
    except Fault as fault:
        return {"fault": str(fault)}


def describe_plan(service: Service, plan: Plan) -> dict[str, Any]:
    """Return a table row for a plan: its cost in dollars, its GPU and batch size, and its instance hours on demand and on
    spot."""
    usd = price_plan(service, plan)
    return {
        "usd_per_day": usd,
        "usd_per_million": _per_million(service, usd),
        "gpu": plan.gpu,
        "batch": plan.batch,
        "on_demand_hours": sum(plan.on_demand),
        "spot_hours": sum(plan.spot),
    }


def list_capacities(service: Service, plan: Plan) -> list[dict[str, Any]]:
    """Return points for a plot: the tokens/s that a plan can generate in each hour, on demand alone and with spot."""
    offer = next(offer for offer in service.offers if offer.gpu == plan.gpu)
    speed = offer.batches[plan.batch][0]
    points = []
    for hour, (steady, spot) in enumerate(zip(plan.on_demand, plan.spot, strict=True)):
        points += [
            {"line": "yours, on demand", "hour": hour, "tok_per_s": steady * speed},
            {"line": "yours, with spot", "hour": hour, "tok_per_s": (steady + spot * working_share(offer)) * speed},
        ]
    return points


def _per_million(service: Service, usd: float) -> float:
    return usd / (sum(service.demand) * 3600) * 1e6
