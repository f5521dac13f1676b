"""Every attempt at a choice or a number, kept beside the answers: `deliverables/<exercise>/attempts.json`.

Their number is kept a second time, in the program's own folder, to detect that the file was removed or shortened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpucourse.model.answer import AnswerAttempt, AnswerAttempts, AnswerResult
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_mapping, read_record, write_record
from gpucourse.workspace.mapping import changing
from gpucourse.workspace.paths import WorkspacePaths

JUDGED = frozenset({"passed", "failed"})


@dataclass(frozen=True, kw_only=True)
class History:
    """The attempts at the questions of one exercise. `complete`: none that was counted is missing."""

    attempts: tuple[AnswerAttempt, ...] = ()
    complete: bool = True

    def has(self, question: str, answer: str) -> bool:
        """Return whether this answer was submitted, and not only written into the sheet."""
        return any((attempt.question, attempt.answer) == (question, answer) for attempt in self.attempts)

    def count_wrong(self, question: str, answer: str) -> int:
        """Count the other answers to a question that were wrong."""
        wrong = {attempt.answer for attempt in self.attempts if attempt.question == question and not attempt.right}
        return len(wrong - {answer})


def read_history(paths: WorkspacePaths, exercise_id: str) -> History:
    """Return every attempt at the questions of an exercise, oldest first. Raises MissingError for a damaged file,
    NewerFormat."""
    record = read_record(paths.attempts(exercise_id), AnswerAttempts)
    attempts = record.attempts if record else ()
    count = read_mapping(paths.attempt_counts).get(exercise_id, 0)
    return History(attempts=attempts, complete=not isinstance(count, int) or len(attempts) >= count)


def add_attempts(paths: WorkspacePaths, exercise_id: str, results: Sequence[AnswerResult], run: str | None) -> None:
    """Store the answers to choices and numbers, each answer once. `run`: the run that they are about. Raises StorageError."""
    with changing(paths, paths.attempt_counts) as counts:
        history = read_history(paths, exercise_id)
        new = [
            AnswerAttempt(
                question=result.id, answer=result.answer or "", right=result.verdict == "passed", at=now_utc(), run=run or ""
            )
            for result in results
            if result.kind in {"choice", "numeric"}
            and result.verdict in JUDGED
            and not history.has(result.id, result.answer or "")
        ]
        if new:
            attempts = (*history.attempts, *new)
            write_record(paths.attempts(exercise_id), AnswerAttempts(exercise=exercise_id, attempts=attempts))
            counts[exercise_id] = max(len(attempts), counts.get(exercise_id, 0))
