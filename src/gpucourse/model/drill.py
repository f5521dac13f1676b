"""Drills: the fault that was injected on purpose, and the learner's diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

How = Literal["kill-rank", "block-port", "wrong-world-size", "slow-rank"]
HOWS: tuple[How, ...] = get_args(How)

MEANING: dict[How, str] = {
    "kill-rank": "a rank is ended by a signal in the middle of its work",
    "block-port": "another process holds the port where the ranks meet",
    "wrong-world-size": "the ranks are given a larger WORLD_SIZE than the number of ranks that were started",
    "slow-rank": "one rank is several times slower than the others",
}
BY_RANK: frozenset[How] = frozenset({"kill-rank", "slow-rank"})
"""Faults in a single rank, whose number is part of the diagnosis."""


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One diagnosis that the learner gave, and whether it was right."""

    how: str
    rank: int | None
    right: bool
    at: str


@dataclass(kw_only=True)
class InjectedFault:
    """The fault injected into a run. Learners see it only after they find it. `rank` is the rank with the fault, or
    None if all ranks have it."""

    version: int = 1
    run: str
    exercise: str
    how: How
    rank: int | None = None
    attempts: list[Attempt] = field(default_factory=list)

    @property
    def is_solved(self) -> bool:
        """Return whether the learner has found the fault."""
        return any(attempt.right for attempt in self.attempts)


@dataclass(frozen=True, kw_only=True)
class CodeDiagnosis:
    """One diagnosis that the learner gave, and whether it was right."""

    fault: str
    right: bool
    at: str


@dataclass(kw_only=True)
class CodeDrill:
    """A fault in a copy of an exercise. `run` is the run with the fault, and `repaired` is the run of the repaired copy."""

    fault: str
    run: str
    diagnoses: list[CodeDiagnosis] = field(default_factory=list)
    repaired: str | None = None


@dataclass(kw_only=True)
class CodeDrills:
    """The drills of an exercise, newest last. Only the newest copy is still in the workspace."""

    version: int = 1
    exercise: str
    drills: list[CodeDrill] = field(default_factory=list)
