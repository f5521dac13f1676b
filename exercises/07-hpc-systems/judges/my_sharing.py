"""Judges my_sharing.py of 7.1: ways and profiles by rule, places by the driver's geometry and by the number of GPUs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import mig
from mig import Card, Service

from gpucourse.judge import Case, Part, Verdict, Way

WAYS = {
    "slices-for-isolation": Way(
        "{name} must be isolated, but you returned {given}: time-slicing and MPS share memory controllers, "
        "caches and faults. Only MIG divides them",
        ('return "mig" if card["profiles"] else "none"', 'return "mps"'),
    ),
    "mig-without-mig": Way(
        "{card} has no MIG: a service that must be isolated gets a separate GPU",
        ('"mig" if card["profiles"] else "none"', '"mig"'),
    ),
    "large-ones-shared": Way(
        "{name} needs {gib:g} of {all:g} GiB and {percent}% of the processors: more than half, so it gets a separate GPU",
        (' or service["percent"] > 50', ""),
    ),
    "slices-for-latency": Way(
        "{name} has to answer within {within} ms: with time slices it waits for the others; MPS runs them at the same time",
        ('"mps" if service["within_ms"] is not None else "time-slicing"', '"time-slicing"'),
    ),
    "memory-alone": Way(
        "{given} has the memory for {name}, but {share:.0f}% of the processors where {percent}% is needed",
        (' and 100 * size["compute"] / card["compute"] >= service["percent"]', ""),
    ),
    "processors-alone": Way(
        "{given} has the processors for {name}, but less than the {gib:g} GiB that it needs",
        ('size["gib"] >= service["gib"] and ', ""),
    ),
    "memory-slices-for-share": Way(
        "you divided by the {memory} memory slices: a profile's share is its compute slices of the card's {compute}",
        ('100 * size["compute"] / card["compute"]', '100 * size["compute"] / card["memory"]'),
    ),
    "forbidden-start": Way(
        "{problem}",
        ('reversed(size["starts"])', 'range(card["memory"] - size["memory"], -1, -1)'),
    ),
    "overlap": Way(
        "{problem}: an instance takes several memory slices from its start on, and none may belong to two",
        ("            if memory_slices & slices:\n                continue\n", ""),
    ),
    "more-gpus": Way(
        "{names} took {given} GPUs in yours, but {best} are enough: an instance at the first free slice may take the only "
        "place that fits the next one",
        ("    for count in range(1, len(names) + 1):\n",
         "    gpus, places = [(set(), [0]) for _ in names], []\n    for name in names:\n"
         "        size = card['profiles'][name]\n        gpu, start = next(\n            (gpu, start)\n"
         "            for gpu, (taken, spent) in enumerate(gpus) for start in size['starts']\n"
         "            if spent[0] + size['compute'] <= card['compute']\n"
         "            and not taken & set(range(start, start + size['memory']))\n"
         "        )\n        gpus[gpu][0].update(range(start, start + size['memory']))\n"
         "        gpus[gpu][1][0] += size['compute']\n        places.append((gpu, start))\n    return places\n"
         "    for count in range(1, len(names) + 1):\n"),
        seen="{names} took {given} GPUs in yours, but {best} are enough",
    ),
}  # fmt: skip
LISTS = {
    "a100-80": (["3g.40gb", "2g.20gb", "2g.20gb"], ["1g.10gb"] * 7, ["4g.40gb", "3g.40gb"], ["1g.20gb"] * 4 + ["2g.20gb"],
                ["3g.40gb", "3g.40gb", "1g.10gb"], ["2g.20gb"] * 3 + ["1g.10gb"], ["4g.40gb", "4g.40gb", "3g.40gb"],
                ["3g.40gb", "3g.40gb", "4g.40gb", "4g.40gb"]),
    "a100-40": (["2g.10gb", "3g.20gb", "1g.5gb", "1g.5gb"], ["7g.40gb", "1g.5gb"]),
    "a30": (["1g.6gb", "2g.12gb", "1g.6gb"], ["2g.12gb", "4g.24gb", "2g.12gb"]),
}  # fmt: skip
PUZZLES = (1, 2, 3, 4, 5)
EDGES = [(Service("half-of-it", 40.0, 40, False, None), "a100-80"), (Service("half-busy", 8.0, 50, False, 50), "a100-80"),
         (Service("exactly-half", 40.0, 40, True, None), "a100-80"), (Service("exact-memory", 10.0, 9, True, 20), "a100-80"),
         (Service("exact-share", 6.0, 25, True, 50), "a30")]  # fmt: skip
"""Needs that are exactly at a limit: half is not more than half, and exactly what a profile has is enough."""


def judge(part: Part) -> None:
    """Judge ways and profiles of the services of five puzzles on six cards, then places."""
    way, profile, place = part.function("way"), part.function("profile"), part.function("place")
    some = [(service, card) for puzzle in PUZZLES for card in mig.CARDS.values() for service in mig.make_services(puzzle, card)]
    some += [(service, mig.CARDS[name]) for service, name in EDGES]
    for service, card in some:
        _judge_way(part, way, service, card)
    mig_pairs = [(service, card) for service, card in some if mig.right_way(service, card) == "mig"]
    part.compare([_profile(part, profile, service, card) for service, card in mig_pairs])
    for name, lists in LISTS.items():
        for names in lists:
            _judge_places(part, place, mig.CARDS[name], names)
    for puzzle in PUZZLES:
        card = mig.CARDS["a100-80"]
        services = [service for service in mig.make_services(puzzle, card) if mig.right_way(service, card) == "mig"]
        if services:
            _judge_places(part, place, card, [mig.right_profile(service, card) for service in services])
    part.note(
        f"{len(some)} services on {len(mig.CARDS)} cards, {sum(map(len, LISTS.values()))} lists of instances on the fewest GPUs"
    )


def _judge_way(part: Part, way: Callable[..., Any], service: Service, card: Card) -> None:
    case = f"{service.name} on {card.name}"
    answer, right = part.call(way, asdict(service), card.describe(), case=case), mig.right_way(service, card)
    if answer == right:
        return
    values = {"name": service.name, "given": answer, "card": card.name, "gib": service.gib, "all": card.gib,
              "percent": service.percent, "within": service.within_ms}  # fmt: skip
    if service.gib > card.gib / 2 or service.percent > 50:
        raise part.wrong("large-ones-shared", case, **values)
    if service.isolated and not card.profiles and answer == "mig":
        raise part.wrong("mig-without-mig", case, **values)
    if service.isolated and answer in ("mps", "time-slicing"):
        raise part.wrong("slices-for-isolation", case, **values)
    if right == "mps" and answer == "time-slicing":
        raise part.wrong("slices-for-latency", case, **values)
    raise Verdict("failed", "other", f"it returned {answer!r}; {right!r} is right: {asdict(service)}", case)


def _profile(part: Part, profile: Callable[..., Any], service: Service, card: Card) -> Case:
    case = f"{service.name} on {card.name}: {service.gib:g} GiB, {service.percent} %"
    answer = part.call(profile, asdict(service), card.describe(), case=case)
    right = mig.right_profile(service, card)
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
    used, best = len({gpu for gpu, _ in places}), len({gpu for gpu, _ in mig.place(card, names)})
    if used > best:
        raise part.wrong("more-gpus", case, output=used, names=", ".join(names), given=used, best=best)
