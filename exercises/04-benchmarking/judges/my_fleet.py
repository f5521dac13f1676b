"""Judge my_fleet.py of 4.4: whether a plan serves the users, then whether a search finds a cheaper one.

days.json of the exercise has what `record` returns for each puzzle.
"""

from __future__ import annotations

import math
from dataclasses import replace

from fleets import (
    HOURS,
    Fault,
    Offer,
    Plan,
    Service,
    make_service,
    price_plan,
    read_plan,
    working_share,
)

from gpucourse.judge import Part, Verdict, Way

WAYS = {
    "limit": Way(
        "your batch is too large for the users. {fault}",
        ("if tpot_ms <= limit_ms}", "}"),
    ),
    "steady": Way(
        "too much of the demand depends on spot. {fault}",
        ("round_up((1 - spot_share) * tokens / speed)", "0"),
    ),
    "lost": Way(
        "you counted spot as if it were never interrupted. {fault}",
        ("works = 1 - offer[\"interruptions_per_day\"] * offer[\"minutes_lost\"] / 1440", "works = 1"),
    ),
    "short": Way(
        "you rented too few instances. {fault}",
        ("return math.ceil(number - 1e-9)", "return math.floor(number)"),
    ),
    "peak-all-day": Way(
        "you rent all day what the busiest hour needs: instances can stop after each hour, and most hours need fewer. It "
        "costs {cost:.2f} dollars a day instead of {best:.2f}",
        ("for tokens in demand]", "for tokens in [max(demand)] * 24]"),
    ),
    "no-spot": Way(
        "you rent nothing on spot, though {share:.0%} of the demand may depend on it: {cost:.2f} dollars a day instead of "
        "{best:.2f}",
        ("round_up((1 - spot_share) * tokens / speed), round_up", "round_up(tokens / speed), round_up"),
    ),
    "other-gpu": Way(
        "your plan is the cheapest with {gpu}, at {cost:.2f} dollars a day, but {other} serves the same day for {best:.2f}. "
        "What counts is the price of the day, in whole instances: not the price of an hour, nor of a token at full load",
        ("plans.append((sum(cost for cost, _, _ in mixes),", "plans.append((offer[\"usd_per_hour\"] / speeds[batch],"),
    ),
    "fewest-on-demand": Way(
        "in each hour you rent as few instances on demand as are allowed, and then the rest on spot. In hour {hour} these are "
        "{steady} on demand and {spot} on spot for {usd:.2f} dollars, but {best_mix} do it for {best_usd:.2f}",
        ("return min(mixes)", "return mixes[0]"),
    ),
    "each-share-alone": Way(
        "you rent for the two shares of the demand separately, and round each up. In hour {hour} these are {steady} on demand "
        "and {spot} on spot for {usd:.2f} dollars, but {best_mix} do it for {best_usd:.2f}: one share leaves a part of an "
        "instance idle, which can serve the other",
        ("max(0, tokens - steady * speed)", "spot_share * tokens"),
    ),
    "largest-batch": Way(
        "you took the largest batch within the limit, {batch}. It is not the fastest one: look at the tokens/s",
        ("batch = max(speeds, key=speeds.get)", "batch = max(speeds)"),
    ),
}  # fmt: skip

_OFFER = Offer("small", 1.0, 0.5, 12, 20, {8: (100.0, 20.0), 16: (180.0, 30.0), 32: (170.0, 45.0)})
# The work of one GPU needs 2.5 such instances on spot, so 3. A mistake rents 2 (rounded) or 1 (no time lost).
_SELDOM = replace(_OFFER, spot_usd_per_hour=0.2, minutes_lost=72)
_LARGE = Offer("large", 3.1, 1.6, 4, 10, {8: (300.0, 12.0), 32: (640.0, 25.0)})
SERVICES = {
    "one offer, no spot allowed": Service((_OFFER,), (500.0,) * 12 + (90.0,) * 12, 30.0, 0.0),
    "a spot instance that works 40 % of the time": Service((_SELDOM,), (180.0,) * 12 + (360.0,) * 12, 30.0, 0.5),
    "a batch that is slower although it is larger": Service((_OFFER,), (700.0,) * HOURS, 50.0, 0.5),
    "little demand": Service((_OFFER, _LARGE), (90.0,) * 20 + (650.0,) * 4, 30.0, 0.25),
    "a limit that no offer meets": Service((_OFFER, _LARGE), (90.0,) * HOURS, 5.0, 0.5),
    "a limit that only one offer meets": Service((_OFFER, _LARGE), (900.0,) * HOURS, 15.0, 0.5),
    "hours without users": Service((_LARGE, _OFFER), (0.0,) * 6 + (1300.0,) * 18, 60.0, 0.75),
}  # fmt: skip
JUDGED_PUZZLES = range(1, 41)


def judge(part: Part) -> None:
    """Judge the plans of a few small services, then of forty puzzles."""
    services = SERVICES | {f"puzzle {puzzle}": make_service(puzzle) for puzzle in JUDGED_PUZZLES}
    for name, service in services.items():
        _judge_plan(part, name, service)
    part.note(f"the cheapest plan for {len(services)} services")


def _judge_plan(part: Part, name: str, service: Service) -> None:
    answer = part.call(part.function("plan"), *service.describe(), case=name)
    best, cheapest = find_best(service)
    if answer is None and cheapest is None:
        return
    if answer is None:
        raise Verdict("failed", "other", "it returned None, but a plan exists", name)
    try:
        plan = read_plan(service, answer)
        cost = price_plan(service, plan)
    except Fault as fault:
        if fault.kind in WAYS:
            is_short = fault.kind == "lost" and not _counts_spot_as_steady(service, plan)
            raise part.wrong("short" if is_short else fault.kind, name, fault=fault) from None
        raise Verdict("failed", "other", str(fault), name) from None
    if cheapest is not None and cost > best * (1 + 1e-9):
        if (way := _name_waste(service, plan, cost)) is None:
            text = (
                f"the plan costs {cost:.2f} dollars a day; {best:.2f} are possible with {cheapest.gpu}, batch {cheapest.batch}"
            )
            raise Verdict("failed", "other", text, name)
        values = {"gpu": plan.gpu, "other": cheapest.gpu, "batch": plan.batch, "share": service.spot_share}
        values |= _describe_waste(service, plan)
        raise part.wrong(way, name, cost=cost, best=best, **values)


def _counts_spot_as_steady(service: Service, plan: Plan) -> bool:
    """Return whether a plan rents, in each hour, what would be cheapest if no spot instance were ever interrupted."""
    offer = next(offer for offer in service.offers if offer.gpu == plan.gpu)
    return plan == rent(service, replace(offer, interruptions_per_day=0), plan.batch)


def _name_waste(service: Service, plan: Plan, cost: float) -> str | None:
    """Return the name of the mistake that leads to an expensive plan, or None.

    The plan must be the cheapest one with this mistake.
    """
    offer = next(offer for offer in service.offers if offer.gpu == plan.gpu)
    single_offer = replace(service, offers=(offer,))
    if len(set(service.demand)) > 1 and plan == rent(service, offer, plan.batch, hourly=False):
        return "peak-all-day"
    if cost <= find_best(single_offer)[0] * (1 + 1e-9):
        return "other-gpu"
    if not any(plan.spot) and cost <= find_best(single_offer, spot=False)[0] * (1 + 1e-9):
        return "no-spot"
    if plan != rent(service, offer, plan.batch):
        for way, alone in (("fewest-on-demand", False), ("each-share-alone", True)):
            if plan == rent_shares(service, offer, plan.batch, alone=alone) and _describe_waste(service, plan):
                return way
    batches = allowed_batches(service, offer)
    if plan.batch == max(batches) and offer.batches[plan.batch][0] < max(offer.batches[batch][0] for batch in batches):
        return "largest-batch"
    return None


def rent_shares(service: Service, offer: Offer, batch: int, *, alone: bool) -> Plan:
    """Return the plan with as few instances on demand as are allowed, and the rest on spot.

    With `alone`, spot serves its whole share of the demand, even if instances on demand could serve a part of it.
    """
    speed, works = offer.batches[batch][0], working_share(offer)
    steady = [math.ceil((1 - service.spot_share) * demand / speed - 1e-9) for demand in service.demand]
    rest = [
        service.spot_share * demand if alone else max(0.0, demand - count * speed)
        for demand, count in zip(service.demand, steady, strict=True)
    ]
    return Plan(offer.gpu, batch, tuple(steady), tuple(math.ceil(tokens / (speed * works) - 1e-9) for tokens in rest))


def _describe_waste(service: Service, plan: Plan) -> dict[str, object]:
    """Return the figures of the first hour in which a plan costs more than necessary, or {} if there is no such hour.

    The cheapest hour is that with the same GPU and batch size.
    """
    offer = next(offer for offer in service.offers if offer.gpu == plan.gpu)
    best = rent(service, offer, plan.batch)
    for hour in range(HOURS):
        usd, best_usd = (
            each.on_demand[hour] * offer.usd_per_hour + each.spot[hour] * offer.spot_usd_per_hour for each in (plan, best)
        )
        if usd > best_usd + 1e-9:
            return {
                "hour": hour, "steady": plan.on_demand[hour], "spot": plan.spot[hour], "usd": usd, "best_usd": best_usd,
                "best_mix": f"{best.on_demand[hour]} on demand and {best.spot[hour]} on spot",
            }  # fmt: skip
    return {}


def record(puzzle: int) -> dict[str, object]:
    """Return what days.json has for a puzzle: two simple plans (GPU, batch, instance hours, dollars), and the lowest cost."""
    service = make_service(puzzle)
    rows: dict[str, object] = {}
    for key, ways in (("peak", {"hourly": False, "spot": False}), ("hourly", {"spot": False})):
        usd, plan = find_best(service, **ways)
        assert plan is not None
        rows[key] = [plan.gpu, plan.batch, sum(plan.on_demand), round(usd, 4)]
    return rows | {"best": round(find_best(service)[0], 4)}


def rent(service: Service, offer: Offer, batch: int, *, hourly: bool = True, spot: bool = True) -> Plan:
    """Return the cheapest plan with this GPU and batch size. It tries every number of on-demand instances for each hour.

    Without `hourly`, all hours have what the busiest one needs; without `spot`, all instances are on demand.
    """
    speed, works = offer.batches[batch][0], working_share(offer)
    on_demand, on_spot = [], []
    for demand in service.demand if hourly else [max(service.demand)] * HOURS:
        min_steady = math.ceil((1 - service.spot_share) * demand / speed - 1e-9) if spot else math.ceil(demand / speed - 1e-9)
        choices = []
        for steady in range(min_steady, math.ceil(demand / speed - 1e-9) + 1):
            shortfall = max(0.0, demand - steady * speed)
            extra = math.ceil(shortfall / (speed * works) - 1e-9)
            choices.append((steady * offer.usd_per_hour + extra * offer.spot_usd_per_hour, steady, extra))
        _, steady, extra = min(choices)
        on_demand.append(steady)
        on_spot.append(extra)
    return Plan(offer.gpu, batch, tuple(on_demand), tuple(on_spot))


def allowed_batches(service: Service, offer: Offer) -> list[int]:
    """Return the batch sizes of an offer whose TPOT is within the limit."""
    return [batch for batch, (_, tpot_ms) in offer.batches.items() if tpot_ms <= service.limit_ms]


def find_best(service: Service, *, hourly: bool = True, spot: bool = True) -> tuple[float, Plan | None]:
    """Return the lowest cost of a day and a plan with this cost: (inf, None) if no offer is within the limit."""
    cheapest: tuple[float, Plan | None] = (math.inf, None)
    for offer in service.offers:
        for batch in allowed_batches(service, offer):
            plan = rent(service, offer, batch, hourly=hourly, spot=spot)
            cost = price_plan(service, plan)
            if cost < cheapest[0] - 1e-9:
                cheapest = cost, plan
    return cheapest
