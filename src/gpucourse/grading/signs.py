"""The progress of an exercise, in the three signs that every screen uses: ran, yours, answered."""

from __future__ import annotations

from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import ExerciseEvidence, Signs

_ANSWERED = frozenset({"passed", "kept", "not_measured"})


def read_signs(evidence: ExerciseEvidence) -> Signs:
    """Return the three signs of an exercise. A sign is None if the exercise does not require it."""
    bad = [check for check in evidence.checks if check.verdict in {"failed", "error"}]
    return Signs(
        ran=evidence.run is not None and not (bad or evidence.changed or evidence.trouble),
        yours=all(part.verdict == "passed" for part in evidence.parts) if evidence.parts else None,
        answered=not list_unanswered(evidence) if _list_asked(evidence) else None,
    )


def list_unanswered(evidence: ExerciseEvidence) -> list[str]:
    """Return the questions that wait for an answer, or for a better one while an attempt is left."""
    return [answer.id for answer in _list_asked(evidence) if answer.verdict not in _ANSWERED and not answer.final]


def _list_asked(evidence: ExerciseEvidence) -> list[AnswerResult]:
    return [answer for answer in evidence.answers if answer.evidence != "gpu" or evidence.level == "gpu"]
