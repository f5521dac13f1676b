"""The results of checks, and the evidence for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpucourse.model.node import Mode

if TYPE_CHECKING:
    from gpucourse.model.manifest import LearnerPart

Verdict = Literal["passed", "failed", "error", "not_measured"]
Evidence = Literal["logic", "gpu"]
PartVerdict = Literal["open", "passed", "failed", "error"]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One check: the observed and the expected value as text with units, and a hint if it did not pass.

    `error` means that the check could not be made, for example because a metric is missing. `not_measured` means that it needs
    a GPU.
    """

    id: str
    title: str
    verdict: Verdict
    evidence: Evidence
    observed: str
    expected: str
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """The judgement of a part that the learner wrote. `open` means that it is not written yet; `error`, that it could not be
    judged.

    `way`: the name of the wrong way that was recognised.
    `says`: the reason.
    `case`: the input on which the part failed.
    `notes`: what the judge counted.
    `output`: the beginning of what the part printed.
    `sha256`: the digest of the judged file. It is empty if there was no file.
    `run`: the run after which the part was judged. It is empty if it was tried without a run.
    """

    id: str
    title: str
    file: str
    verdict: PartVerdict
    way: str = ""
    says: str = ""
    case: str = ""
    notes: tuple[str, ...] = ()
    output: str = ""
    seconds: float = 0.0
    sha256: str = ""
    run: str = ""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """One exercise that `dev check --run` ran: the verdict of its checks, its duration in seconds, and the complaints.

    `skipped` says why the exercise was not run.
    """

    exercise: str
    verdict: str | None = None
    seconds: float | None = None
    complaints: tuple[str, ...] = ()
    skipped: str = ""


def count_verdicts(checks: Iterable[CheckResult]) -> str:
    """Return how many checks have each verdict: `7 passed, 1 not measured`. Every screen counts checks in these words."""
    counts = Counter(check.verdict for check in checks)
    words: tuple[Verdict, ...] = ("passed", "failed", "error", "not_measured")
    return ", ".join(f"{counts[word]} {word.replace('_', ' ')}" for word in words if counts[word]) or "no checks"


def choose_needed(parts: Sequence[LearnerPart], results: Iterable[PartResult]) -> tuple[PartResult, ...]:
    """Return the results that count.

    Of parts that can replace each other, only the one with the best verdict counts (passed, then failed, error, open). If
    several have the same verdict, the first one counts.
    """
    places = {part.id: part.instead_of or part.id for part in parts}
    words: tuple[PartVerdict, ...] = ("passed", "failed", "error", "open")
    by_part: dict[str, PartResult] = {}
    for result in results:
        place = places[result.id]
        if place not in by_part or words.index(result.verdict) < words.index(by_part[place].verdict):
            by_part[place] = result
    return tuple(by_part.values())


@dataclass(frozen=True, kw_only=True)
class KeptParts:
    """`yours.json`: the handed-in parts of one exercise, by the part's id; open parts are left out. `tried` is when `try` last
    judged a part. `newest` has the newest verdict on each part, which may be about another file; hints use it."""

    version: int = 1
    tried: str = ""
    parts: dict[str, PartResult] = field(default_factory=dict)
    newest: dict[str, PartResult] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExerciseVerdict:
    """All checks of one exercise on one run, and their summary: the worst of failed, error, passed.

    `parts` are the results of the learner's parts, which the summary does not cover.
    """

    version: int = 1
    exercise: str
    run: str
    mode: Mode
    verdict: Verdict
    checks: tuple[CheckResult, ...] = field(default_factory=tuple)
    parts: tuple[PartResult, ...] = ()
