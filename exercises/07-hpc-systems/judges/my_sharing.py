"""Judge my_sharing.py of 7.1: the way of sharing and the MIG profile must be those of the course's rules. The driver must allow
the placements, on as few GPUs as possible."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import mig
from mig import Card, Place, Service

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "slices-for-isolation": Way(
        "{name} must be isolated, but you returned {given}: with it the services of a card share memory controllers, "
        "caches and faults",
        ('return "mig" if card["profiles"] else "none"', 'return "mps"'),
    ),
    "mig-without-mig": Way(
        "{card} has no MIG, and {name} must be isolated",
        ('"mig" if card["profiles"] else "none"', '"mig"'),
    ),
    "large-ones-shared": Way(
        "{name} needs {gib:g} of {all:g} GiB and {percent}% of the processors: it does not leave half of both to the others",
        (' or service["percent"] > 50', ""),
    ),
    "slices-for-latency": Way(
        "{name} has to answer within {within} ms, but with time slices it waits for the slices of all others",
        ('"mps" if service["within_ms"] is not None else "time-slicing"', '"time-slicing"'),
    ),
    "dearer-than-needed": Way(
        "you returned {given} for {name}, but {right} is cheaper and meets its needs: {needs}",
        ('"mps" if service["within_ms"] is not None else "time-slicing"', '"mps"'),
    ),
    "memory-alone": Way(
        "{given} has the memory for {name}, but only {share:.0f}% of the processors, and {percent}% are needed",
        (' and 100 * size["compute"] / card["compute"] >= service["percent"]', ""),
    ),
    "processors-alone": Way(
        "{given} has the processors for {name}, but less than the {gib:g} GiB that it needs",
        ('size["gib"] >= service["gib"] and ', ""),
    ),
    "memory-slices-for-share": Way(
        "you divided by the {memory} memory slices: a profile's share is its compute slices divided by the card's {compute}",
        ('100 * size["compute"] / card["compute"]', '100 * size["compute"] / card["memory"]'),
    ),
    "forbidden-start": Way(
        "{problem}",
        ('reversed(size["starts"])', 'range(card["memory"] - size["memory"], -1, -1)'),
    ),
    "overlap": Way(
        "{problem}: an instance occupies several memory slices, beginning at its start, and no slice may belong to two of them",
        ("            if memory_slices & slices:\n                continue\n", ""),
    ),
    "more-gpus": Way(
        "your placement of {names} needs {given} GPUs, but {best} are enough: an instance at the first free slice may take the "
        "only place that fits the next one",
        ("    for count in range(1, len(names) + 1):\n",
         "    gpus, places = [(set(), [0]) for _ in names], []\n    for name in names:\n"
         "        size = card['profiles'][name]\n        gpu, start = next(\n            (gpu, start)\n"
         "            for gpu, (taken, spent) in enumerate(gpus) for start in size['starts']\n"
         "            if spent[0] + size['compute'] <= card['compute']\n"
         "            and not taken & set(range(start, start + size['memory']))\n"
         "        )\n        gpus[gpu][0].update(range(start, start + size['memory']))\n"
         "        gpus[gpu][1][0] += size['compute']\n        places.append((gpu, start))\n    return places\n"
         "    for count in range(1, len(names) + 1):\n"),
        seen="your placement of {names} needs {given} GPUs, but {best} are enough",
    ),
}  # fmt: skip
LISTS = {
    "a100-80": (["3g.40gb", "2g.20gb", "2g.20gb"], ["1g.10gb"] * 7, ["4g.40gb", "3g.40gb"], ["1g.20gb"] * 4 + ["2g.20gb"],
                ["3g.40gb", "3g.40gb", "1g.10gb"], ["2g.20gb"] * 3 + ["1g.10gb"], ["4g.40gb", "4g.40gb", "3g.40gb"],
                ["3g.40gb", "3g.40gb", "4g.40gb", "4g.40gb"]),
    "a100-40": (["2g.10gb", "3g.20gb", "1g.5gb", "1g.5gb"], ["7g.40gb", "1g.5gb"]),
    "a30": (["1g.6gb", "2g.12gb", "1g.6gb"], ["2g.12gb", "4g.24gb", "2g.12gb"]),
}  # fmt: skip
JUDGED_PUZZLES = (1, 2, 3, 4, 5)
ORDER = ("time-slicing", "mps", "mig", "none")
"""The ways, from the cheapest to the most expensive."""
EDGES = [(Service("half-of-it", 40.0, 40, False, None), "a100-80"), (Service("half-busy", 8.0, 50, False, 50), "a100-80"),
         (Service("exactly-half", 40.0, 40, True, None), "a100-80"), (Service("exact-memory", 10.0, 9, True, 20), "a100-80"),
         (Service("exact-share", 6.0, 25, True, 50), "a30")]  # fmt: skip
"""Needs that are exactly at a limit: half is not more than half, and exactly what a profile has is enough."""


def judge(part: Part) -> None:
    """Judge ways and profiles of the services of five puzzles on six cards, then places."""
    way, profile, place = part.function("way"), part.function("profile"), part.function("place")
    sample = [
        (service, card)
        for puzzle in JUDGED_PUZZLES
        for card in mig.CARDS.values()
        for service in mig.make_services(puzzle, card)
    ]
    sample += [(service, mig.CARDS[name]) for service, name in EDGES]
    for service, card in sample:
        _judge_way(part, way, service, card)
    mig_pairs = [(service, card) for service, card in sample if right_way(service, card) == "mig"]
    part.compare([_profile(part, profile, service, card) for service, card in mig_pairs])
    for name, lists in LISTS.items():
        for names in lists:
            _judge_places(part, place, mig.CARDS[name], names)
    for puzzle in JUDGED_PUZZLES:
        card = mig.CARDS["a100-80"]
        services = [service for service in mig.make_services(puzzle, card) if right_way(service, card) == "mig"]
        if services:
            _judge_places(part, place, card, [right_profile(service, card) for service in services])
    part.note(
        f"{len(sample)} services on {len(mig.CARDS)} cards; "
        f"{sum(map(len, LISTS.values()))} lists of instances on the fewest GPUs"
    )


def _judge_way(part: Part, way: Callable[..., Any], service: Service, card: Card) -> None:
    case = f"{service.name} on {card.name}"
    answer, right = part.call(way, asdict(service), card.describe(), case=case), right_way(service, card)
    if answer == right:
        return
    values = {"name": service.name, "given": answer, "card": card.name, "gib": service.gib, "all": card.gib,
              "percent": service.percent, "within": service.within_ms}  # fmt: skip
    if (service.gib > card.gib / 2 or service.percent > 50) and answer in ORDER:
        raise part.wrong("large-ones-shared", case, **values)
    if service.isolated and not card.profiles and answer == "mig":
        raise part.wrong("mig-without-mig", case, **values)
    if service.isolated and answer in ("mps", "time-slicing"):
        raise part.wrong("slices-for-isolation", case, **values)
    if right == "mps" and answer == "time-slicing":
        raise part.wrong("slices-for-latency", case, **values)
    if answer in ORDER and ORDER.index(answer) > ORDER.index(right):
        raise part.wrong("dearer-than-needed", case, **values, right=right, needs=_describe_needs(service))
    raise Verdict("failed", "other", f"it returned {answer!r}, which is none of {', '.join(ORDER)}", case)


def _describe_needs(service: Service) -> str:
    needs = [f"{service.gib:g} GiB and {service.percent}% of the processors"]
    needs += ["isolation"] * service.isolated
    return ", ".join(needs + [f"an answer within {service.within_ms} ms"] * (service.within_ms is not None))


def _profile(part: Part, profile: Callable[..., Any], service: Service, card: Card) -> Case:
    case = f"{service.name} on {card.name}: {service.gib:g} GiB, {service.percent} %"
    answer = part.call(profile, asdict(service), card.describe(), case=case)
    right = right_profile(service, card)
    of_given = card.profile(answer) if isinstance(answer, str) else None
    share = 100 * of_given.compute / card.compute if of_given else 0
    ways = {
        "memory-alone": next(p.name for p in card.profiles if p.gib >= service.gib),
        "processors-alone": next(p.name for p in card.profiles if 100 * p.compute / card.compute >= service.percent),
        "memory-slices-for-share": next(
            (p.name for p in card.profiles if p.gib >= service.gib and 100 * p.compute / card.memory >= service.percent), None
        ),
    }
    values = {"name": service.name, "gib": service.gib, "percent": service.percent, "share": share, "memory": card.memory,
              "compute": card.compute}  # fmt: skip
    return Case(case, answer, right, ways, values)


def _judge_places(part: Part, place: Callable[..., Any], card: Card, names: Sequence[str]) -> None:
    case = f"{', '.join(names)} on {card.name}"
    answer = part.call(place, list(names), card.describe(), case=case)
    try:
        places = [(operator.index(gpu), operator.index(start)) for gpu, start in answer]
    except (TypeError, ValueError):
        raise Verdict(
            "failed",
            "no-places",
            "it has to return a pair of whole numbers for each profile: its GPU and where it begins",
            case,
        ) from None
    numbers = sorted({gpu for gpu, _ in places})
    if numbers != list(range(len(numbers))):
        says = f"it uses the GPUs {', '.join(map(str, numbers[:8]))}: they are numbered from 0, without gaps"
        raise Verdict("failed", "numbering", says, case)
    for problem in mig.find_problems(card, names, places)[:1]:
        way = "forbidden-start" if "cannot begin" in problem else "overlap"
        raise part.wrong(way, case, problem=problem)
    used, best = len({gpu for gpu, _ in places}), len({gpu for gpu, _ in find_places(card, names)})
    if used > best:
        raise part.wrong("more-gpus", case, output=used, names=", ".join(names), given=used, best=best)


def record(puzzle: int) -> dict[str, dict[str, Any]]:
    """Return the entry of a puzzle in needs.json: a row for each card."""
    rows = {}
    for card in mig.CARDS.values():
        services = mig.make_services(puzzle, card)
        ways = [right_way(service, card) for service in services]
        divided = [service for service, way in zip(services, ways, strict=True) if way == "mig"]
        names = [right_profile(service, card) for service in divided]
        sizes = {profile.name: profile.gib for profile in card.profiles}
        ratio = round(sum(sizes[name] for name in names) / sum(service.gib for service in divided), 4) if divided else None
        gpus = len({gpu for gpu, _ in find_places(card, names)})
        rows[card.name] = {
            "ways": ways, "instances": len(names), "reserved_ratio": ratio, "gpus": gpus,
            "first_free": count_first_free(card, names),
        }  # fmt: skip
    return rows


def right_way(service: Service, card: Card) -> str:
    """Return the cheapest way of sharing a card that meets all needs of a service, or "none" for a separate GPU."""
    if service.gib > card.gib / 2 or service.percent > 50:
        return "none"
    if service.isolated:
        return "mig" if card.profiles else "none"
    return "mps" if service.within_ms is not None else "time-slicing"


def right_profile(service: Service, card: Card) -> str:
    """Return the smallest profile with enough memory and a large enough share of the processors."""
    enough = (p for p in card.profiles if p.gib >= service.gib and 100 * p.compute / card.compute >= service.percent)
    return next(profile.name for profile in enough)


def find_places(card: Card, names: Sequence[str]) -> list[Place]:
    """Return places on the fewest GPUs.

    Search through all starts of all instances, largest first, adding a GPU until all instances fit.
    """
    sizes = {profile.name: profile.memory for profile in card.profiles}
    order = sorted(range(len(names)), key=lambda number: -sizes[names[number]])
    for gpus in range(1, len(names) + 1):
        places = _place_on(card, order, names, gpus)
        if places is not None:
            return [places[number] for number in range(len(names))]
    return []


def count_first_free(card: Card, names: Sequence[str]) -> int:
    """Return the GPUs that are used if each instance in turn begins at the first place that is free and allowed."""
    places: list[Place] = []
    for name in names:
        profile = card.profile(name)
        assert profile is not None
        every_place = ((gpu, start) for gpu in range(len(names)) for start in profile.starts)
        placed = names[: len(places) + 1]
        places.append(next(spot for spot in every_place if not mig.find_problems(card, placed, [*places, spot])))
    return len({gpu for gpu, _ in places})


def _place_on(card: Card, order: list[int], names: Sequence[str], gpus: int) -> dict[int, Place] | None:
    free = [set(range(card.memory)) for _ in range(gpus)]
    free_compute = [card.compute] * gpus
    placement: dict[int, Place] = {}

    def go(at: int) -> bool:
        if at == len(order):
            return True
        profile = card.profile(names[order[at]])
        assert profile is not None
        states = set()
        for gpu in range(gpus):
            state = (frozenset(free[gpu]), free_compute[gpu])
            if state in states or free_compute[gpu] < profile.compute:
                continue  # equal to a GPU that was tried
            states.add(state)
            for start in profile.starts:
                slices = set(range(start, start + profile.memory))
                if not slices <= free[gpu]:
                    continue
                free[gpu] -= slices
                free_compute[gpu] -= profile.compute
                placement[order[at]] = (gpu, start)
                if go(at + 1):
                    return True
                free[gpu] |= slices
                free_compute[gpu] += profile.compute
        return False

    return placement if go(0) else None
