"""Store every attempt at a choice or a number next to the answers: `deliverables/<exercise>/attempts.json`."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.model.answer import AnswerAttempt, AnswerAttempts, AnswerResult
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

JUDGED = frozenset({"passed", "failed"})

Attempts = tuple[AnswerAttempt, ...]
"""The attempts at the questions of one exercise, oldest first."""


def read_attempts(paths: WorkspacePaths, exercise_id: str) -> Attempts:
    """Return every attempt at the questions of an exercise. Raises MissingError if the file is damaged, and NewerFormat if a
    newer gpucourse wrote it.
    """
    record = read_record(paths.attempts(exercise_id), AnswerAttempts)
    return record.attempts if record else ()


def is_submitted(attempts: Attempts, result: AnswerResult) -> bool:
    """Return whether this answer was submitted, not only written into the sheet."""
    return any((attempt.question, attempt.answer) == (result.id, result.answer) for attempt in attempts)


def count_wrong(attempts: Attempts, result: AnswerResult) -> int:
    """Count the other answers to this question that were wrong."""
    wrong_answers = {attempt.answer for attempt in attempts if attempt.question == result.id and not attempt.right}
    return len(wrong_answers - {result.answer})


def add_attempts(paths: WorkspacePaths, exercise_id: str, results: Sequence[AnswerResult], run: str | None) -> None:
    """Store the answers to choice and number questions, each answer once. `run` is the run that they are about. Raises
    StorageError if they cannot be stored.
    """
    with hold_lock(paths.lock("attempts"), f"answer {exercise_id}"):
        attempts = read_attempts(paths, exercise_id)
        new = [
            AnswerAttempt(
                question=result.id, answer=result.answer or "", right=result.verdict == "passed", at=now_utc(), run=run or ""
            )
            for result in results
            if result.kind in {"choice", "numeric"} and result.verdict in JUDGED and not is_submitted(attempts, result)
        ]
        if new:
            write_record(paths.attempts(exercise_id), AnswerAttempts(exercise=exercise_id, attempts=(*attempts, *new)))
