"""`grade`: applies the rubric to what every exercise has to show, and records a person's judgement of free text.

A judgement gives points if a reviewer made it on a bundle (`Context.reviewed`); it is kept in the reviewer's workspace. A
learner's own judgement is kept in the learner's workspace; it is shown, but gives no points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import ManifestError, MissingError, NewerFormat, UnknownName, UsageError
from gpucourse.learning import answer_sheet, evidence, quiz
from gpucourse.model.answer import AnswerResult, Judgement, Review
from gpucourse.model.event import Note
from gpucourse.model.fields import is_utf8
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.model.score import Grade, QuizScore
from gpucourse.storage import find_login
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A free text that waits for a person."""

    exercise: Exercise
    question: Question
    answer: str


def grade(context: Context, *, thorough: bool = True) -> Grade:
    """Every point, from the evidence that is in the workspace. `thorough`: every file of a run is compared with its seal.

    Raises ManifestError if the rubric is wrong.
    """
    from gpucourse.course.rubric import parts_of, read_rubric
    from gpucourse.grading.points import grade as points

    modules = context.catalog.modules
    rubric = read_rubric(context.folders.modules)
    exercises = {module.id: [exercise.id for exercise in module.exercises] for module in modules}
    evidence_by_exercise = {
        exercise.id: evidence.gather(context, exercise, thorough=thorough)
        for module in modules
        for exercise in module.exercises
    }
    return points(parts_of(rubric, modules), exercises, evidence_by_exercise, _quiz_score(context))


def _quiz_score(context: Context) -> QuizScore | None:
    try:
        return quiz.score(context)
    except NewerFormat:
        raise
    except MissingError as error:  # the other points do not depend on it
        context.watch(Note(text=f"the quiz is not counted: {error.what}; {error.hint}", level="warning"))
        return None


def list_pending(context: Context, exercise_id: str | None = None) -> list[Pending]:
    """Every free text that this reviewer, or this learner, has not judged yet, in the order of the course; of one exercise,
    or of all."""
    if exercise_id is not None:
        exercises: Sequence[Exercise] = (context.catalog.exercise(exercise_id)[1],)
    else:
        exercises = [exercise for module in context.catalog.modules for exercise in module.exercises]
    return [
        Pending(exercise=exercise, question=question, answer=result.answer or "")
        for exercise in exercises
        for question, result in _read_answers(context, exercise)
        if result.verdict == "kept" and result.share is None and not (result.self_judged and context.reviewed is None)
    ]


def judgement(
    context: Context, exercise_id: str, question: str, share: float, *, by: str, comment: str = ""
) -> tuple[str, Judgement]:
    """What a person says of one free text, to be kept with `keep`: how good it is, from 0 to 1.

    Raises UnknownName; UsageError if the share is out of range, the name is empty, or there is no free text to judge.
    """
    from gpucourse.grading.answers import fingerprint

    _, exercise = context.catalog.exercise(exercise_id)
    known = [candidate.id for candidate in exercise.questions]
    if question not in known:
        raise UnknownName("question", question, known, hint=f"questions of {exercise_id}: {', '.join(known)}")
    if not 0 <= share <= 1:
        raise UsageError(
            f"{share:.0%} is not from 0 to 100%", hint=f"gpucourse grade --review --judge {exercise_id}/{question}=80"
        )
    if not by.strip() or not is_utf8(by + comment):
        raise UsageError("a judgement needs a name, in text", hint="gpucourse grade --review --by NAME")
    sheet = answer_sheet.load_sheet(context, exercise)
    answer = sheet.answers.get(question) if sheet else None
    kind = next(candidate.kind for candidate in exercise.questions if candidate.id == question)
    if kind != "text":
        raise UsageError(f"{exercise_id} {question} is not free text: its answer is judged by itself", hint="gpucourse grade")
    if answer is None or not str(answer).strip():
        raise UsageError(f"{exercise_id} {question} has no answer yet", hint=f"gpucourse answer {exercise_id}")
    made = Judgement(
        question=question, share=share, by=by.strip(), at=now_utc(), comment=comment, answer_sha256=fingerprint(answer)
    )
    return exercise_id, made


def keep(context: Context, judgements: Sequence[tuple[str, Judgement]]) -> None:
    """Record judgements, each with its exercise, behind those that are there: in the workspace of whoever judges.
    Raises StorageError."""
    work = context.reviewed
    with hold_lock((work.keeper if work else context.paths).lock("reviews"), "grade --review"):
        for exercise_id, made in judgements:
            path = work.keeper.peer_review(work.key, exercise_id) if work else context.paths.review(exercise_id)
            before = read_record(path, Review)
            write_record(path, Review(exercise=exercise_id, judgements=(*(before.judgements if before else ()), made)))


def name_learner(context: Context) -> str:
    """The learner's name: the workspace's owner, else the login."""
    return context.settings.owner or find_login()


def _read_answers(context: Context, exercise: Exercise) -> list[tuple[Question, AnswerResult]]:
    try:
        return list(zip(exercise.questions, evidence.answers_of(context, exercise), strict=True))
    except ManifestError:  # a sheet that cannot be read: the grade says so
        return []
