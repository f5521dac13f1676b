"""Races of random programs, against the definition: every pair of accesses is looked at, and nothing but that."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

READ, WRITE, ATOMIC, NOTHING, WARP, BLOCK = "rwa.WB"
SOURCE = Path(__file__).with_name("any_order.cu")


@dataclass(frozen=True)
class RandomProgram:
    """What each thread does in each step: an operation and a place, or a barrier of all."""

    blocks: int
    threads: int
    in_shared: bool
    steps: list[str]
    places: list[str]

    def words(self) -> list[str]:
        numbers = (self.blocks, self.threads, len(self.steps), int(self.in_shared))
        return [*map(str, numbers), "".join(self.steps), "".join(self.places)]

    def has_race(self) -> bool:
        """Whether two accesses of one place, one of them a write and not both atomic, are ordered by nothing."""
        accesses: list[tuple[str, int, str, int, int]] = []
        blocks_waited = warps_waited = 0
        for step, places in zip(self.steps, self.places, strict=True):
            blocks_waited += step[0] == BLOCK
            warps_waited += step[0] == WARP
            accesses += [
                (operation, thread, places[thread], blocks_waited, warps_waited)
                for thread, operation in enumerate(step)
                if operation in {READ, WRITE, ATOMIC}
            ]
        return any(self.is_race(*pair) for pair in itertools.combinations(accesses, 2))

    def is_race(self, first: tuple[str, int, str, int, int], second: tuple[str, int, str, int, int]) -> bool:
        operations = {first[0], second[0]}
        if first[1] == second[1] or first[2] != second[2] or operations in ({READ}, {ATOMIC}):
            return False
        if first[1] // self.threads != second[1] // self.threads:
            return not self.in_shared
        if first[3] != second[3]:
            return False
        warps = {thread % self.threads // 32 for thread in (first[1], second[1])}
        return len(warps) == 2 or first[4] == second[4]


def make_program(chance: random.Random) -> RandomProgram:
    blocks, threads = chance.choice([(1, 40), (2, 2), (2, 33), (2, 64)])
    total, reads, density = blocks * threads, chance.random(), chance.choice([0.01, 0.03, 0.1])
    steps = []
    for _ in range(chance.randint(1, 9)):
        barrier = chance.choice([BLOCK, WARP, None, None])
        mixture = [READ if chance.random() < reads else chance.choice([READ, READ, WRITE, ATOMIC]) for _ in range(total)]
        step = "".join(operation if chance.random() < density else NOTHING for operation in mixture)
        steps.append(barrier * total if barrier else step)
    places = ["".join(chance.choice("0123") for _ in range(total)) for _ in steps]
    return RandomProgram(blocks, threads, chance.random() < 0.5, steps, places)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_races_are_those_of_the_definition(build: Callable[..., Any], seed: int) -> None:
    program, chance = build(SOURCE.read_text(encoding="utf-8")), random.Random(seed)
    programs = [make_program(chance) for _ in range(120)]
    found_races = [program.run(*item.words(), order=chance.randrange(4)).kernels["carry_out"].races > 0 for item in programs]
    assert found_races == [item.has_race() for item in programs]
    assert 20 < sum(found_races) < 100, "both kinds of programs occur"
