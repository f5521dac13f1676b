"""Verdicts. A check ends in one of four words; each says on what evidence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpucourse.model.node import Mode

Verdict = Literal["passed", "failed", "error", "not_measured"]
Evidence = Literal["logic", "gpu"]


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """One check: what was observed, what was expected (both as text with units), and a hint where it did not pass.

    `error` means the check itself could not run (a metric is missing); `not_measured` that it needs a GPU.
    """

    id: str
    title: str
    verdict: Verdict
    evidence: Evidence
    observed: str
    expected: str
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class ExerciseVerdict:
    """All checks of one exercise on one run, and the word that sums them up: the worst of failed, error, passed."""

    version: int = 1
    exercise: str
    run: str
    mode: Mode
    verdict: Verdict
    checks: tuple[CheckResult, ...] = field(default_factory=tuple)
