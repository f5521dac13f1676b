"""The instances of a GPU that is divided by MIG: its profiles and their allowed places. And services that share a GPU.

Places are as `nvidia-smi mig -lgipp` prints them. A profile may begin only at certain memory slices, and takes several. A GPU
also has compute slices. The profiles of A100 and H100 are from NVIDIA's "MIG User Guide", and those of an A30 from its own
table.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Profile:
    """An instance: its name, compute slices, memory slices, GiB, and the memory slices at which it may begin."""

    name: str
    compute: int
    memory: int
    gib: int
    starts: tuple[int, ...]


@dataclass(frozen=True)
class Card:
    """A GPU: GiB of memory, compute slices, memory slices (0 if it has no MIG) and its profiles, the smallest first."""

    name: str
    gib: int
    compute: int
    memory: int
    profiles: tuple[Profile, ...]

    def profile(self, name: str) -> Profile | None:
        """Return the profile with that name."""
        return next((profile for profile in self.profiles if profile.name == name), None)

    def describe(self) -> dict[str, object]:
        """Return the card as plain values, for the learner's functions."""
        profiles = {
            profile.name: {
                "compute": profile.compute,
                "memory": profile.memory,
                "gib": profile.gib,
                "starts": list(profile.starts),
            }
            for profile in self.profiles
        }
        return {"name": self.name, "gib": self.gib, "compute": self.compute, "memory": self.memory, "profiles": profiles}


def _ampere(gib: int) -> tuple[Profile, ...]:
    rows = [
        (1, 1, range(7)), (1, 2, (0, 2, 4, 6)), (2, 2, (0, 2, 4)), (3, 4, (0, 4)), (4, 4, (0,)), (7, 8, (0,)),
    ]  # fmt: skip
    return tuple(Profile(f"{c}g.{m * gib // 8}gb", c, m, m * gib // 8, tuple(starts)) for c, m, starts in rows)


CARDS = {
    card.name: card
    for card in (
        Card("a100-40", 40, 7, 8, _ampere(40)),
        Card("a100-80", 80, 7, 8, _ampere(80)),
        Card("h100-80", 80, 7, 8, _ampere(80)),
        Card("a30", 24, 4, 4, (Profile("1g.6gb", 1, 1, 6, (0, 1, 2, 3)), Profile("2g.12gb", 2, 2, 12, (0, 2)),
                               Profile("4g.24gb", 4, 4, 24, (0,)))),
        Card("t4", 16, 0, 0, ()),
        Card("l4", 24, 0, 0, ()),
    )
}  # fmt: skip

PUZZLES = 40
Place = tuple[int, int]  # the GPU's number, and the memory slice at which the instance begins


def find_problems(card: Card, names: Sequence[str], places: Sequence[Place]) -> list[str]:
    """Return the faults that a driver would refuse: unknown profiles, forbidden starts, overlaps, too many compute slices."""
    if len(names) != len(places):
        return [f"{len(names)} instances and {len(places)} places"]
    problems = []
    slices_by_gpu: dict[int, dict[int, str]] = {}
    compute: dict[int, int] = {}
    for name, (gpu, start) in zip(names, places, strict=True):
        profile = card.profile(name)
        if profile is None:
            problems.append(f"{card.name} has no profile {name}")
            continue
        if start not in profile.starts:
            problems.append(f"{name} cannot begin at {start}, only at {', '.join(map(str, profile.starts))}")
            continue
        slices = slices_by_gpu.setdefault(gpu, {})
        problems += [
            f"GPU {gpu}: {name} at {start} overlaps {slices[at]}" for at in range(start, start + profile.memory) if at in slices
        ][:1]
        slices.update(dict.fromkeys(range(start, start + profile.memory), f"{name} at {start}"))
        compute[gpu] = compute.get(gpu, 0) + profile.compute
    overfull = [(gpu, count) for gpu, count in compute.items() if count > card.compute]
    return problems + [f"GPU {gpu}: {count} compute slices, but it has {card.compute}" for gpu, count in overfull]


def draw(card: Card, names: Sequence[str], places: Sequence[Place]) -> Iterator[str]:
    """Yield a line for each GPU, with a cell for each memory slice."""
    for gpu in sorted({gpu for gpu, _ in places}):
        cells = ["."] * card.memory
        for name, (place_gpu, start) in zip(names, places, strict=True):
            profile = card.profile(name)
            if place_gpu == gpu and profile:
                cells[start : start + profile.memory] = [name.split(".")[0]] * profile.memory
        yield f"GPU {gpu}  " + " ".join(f"{cell:>2}" for cell in cells)


@dataclass(frozen=True)
class Service:
    """A service that shares a GPU.

    It has a name, GiB, percent of the processors, whether it must be isolated, and the milliseconds within which it has to
    answer.
    """

    name: str
    gib: float
    percent: int
    isolated: bool
    within_ms: int | None


def make_services(puzzle: int, card: Card) -> list[Service]:
    """Return seven to nine services that follow from `puzzle`. None is larger than the card."""
    chance = random.Random(puzzle)
    kinds = [("chat", True), ("search", True), ("speech", True), ("notebook", False), ("report", False), ("batch", False)]
    services = []
    for number in range(chance.randint(7, 9)):
        kind, waits = chance.choice(kinds)
        gib = round(card.gib * chance.choice([0.1, 0.12, 0.2, 0.24, 0.3, 0.45, 0.9]) * chance.uniform(0.7, 1.0), 1)
        percent = chance.choice([5, 9, 12, 18, 24, 27, 40, 45, 80])
        services.append(
            Service(f"{kind}-{number}", gib, percent, chance.random() < 0.6, chance.choice([20, 50, 200]) if waits else None)
        )
    return services


@dataclass(frozen=True)
class Needs:
    """The needs of a puzzle's services on a card: a way to share for each service, and the number of instances.

    `reserved_ratio` is the memory of the smallest fitting instances, divided by what their services need, or None.
    `gpus` is the lowest number of GPUs that hold these instances, `first_free` the number that they take if each of them in
    turn begins at the first place that is free and allowed.
    """

    ways: list[str]
    instances: int
    reserved_ratio: float | None
    gpus: int
    first_free: int


def read_needs(puzzle: int, card: Card) -> Needs:
    """Return the entry of needs.json for a puzzle and a card."""
    recorded = json.loads(Path(__file__).with_name("needs.json").read_text(encoding="utf-8"))
    return Needs(**recorded[str(puzzle)][card.name])
