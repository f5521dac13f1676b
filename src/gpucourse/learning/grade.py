"""`grade`: applies the rubric to the evidence of every exercise, and stores a person's judgements of free text.

A reviewer's judgement of a bundle (`Context.reviewed`) is stored in the reviewer's workspace. A learner's own judgement is
stored in the learner's workspace, earns at most half of the points, and is replaced by a reviewer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.course.answer_sheet import load_sheet
from gpucourse.course.rubric import parts_of, read_rubric
from gpucourse.errors import ManifestError, MissingError, NewerFormat, UnknownName, UsageError
from gpucourse.grading.answers import fingerprint
from gpucourse.grading.points import grade as points
from gpucourse.grading.points import narrow
from gpucourse.learning import evidence, quiz
from gpucourse.model.answer import AnswerResult, Judgement, Review
from gpucourse.model.event import Note
from gpucourse.model.fields import is_utf8
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.model.score import ExerciseEvidence, Grade, QuizScore
from gpucourse.runs.parts import read_part_results
from gpucourse.storage import find_login
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.workspace.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Pending:
    """Work that a person must judge: a free text, or a part that copies a solution of the course.

    `id`: the id of the question or the part.
    `text`: the question.
    `answer`: the learner's answer.
    """

    exercise: str
    id: str
    text: str
    answer: str
    look_for: str = ""
    is_code: bool = False


def grade(context: Context, *, thorough: bool = True) -> Grade:
    """Return the whole grade, from the evidence in the workspace. `thorough` compares every file of a run with its seal.

    Raises ManifestError if the rubric has errors.
    """
    modules = context.catalog.modules
    rubric = read_rubric(context.folders.modules)
    exercises = {module.id: [exercise.id for exercise in module.exercises] for module in modules}
    evidence_by_exercise = {
        exercise.id: _gather(context, exercise, thorough=thorough) for exercise in context.catalog.exercises
    }
    titles = {module.id: module.title for module in modules}
    titles |= {exercise.id: exercise.title for exercise in context.catalog.exercises}
    return points(parts_of(rubric, modules), exercises, evidence_by_exercise, _quiz_score(context), titles=titles)


def grade_subject(context: Context, name: str) -> tuple[str, Grade]:
    """Return the title of the exercise or module with the number `name`, and its part of the grade. Raises UnknownName, and the
    errors of `grade`."""
    if "." in name:
        exercises: Sequence[Exercise] = (context.catalog.exercise(name)[1],)
        title = f"{name} {exercises[0].title}"
    else:
        module = context.catalog.module(name)
        exercises, title = module.exercises, f"module {name}: {module.title}"
    return title, narrow(grade(context), [exercise.id for exercise in exercises])


def _gather(context: Context, exercise: Exercise, *, thorough: bool) -> ExerciseEvidence:
    """Return the evidence of an exercise, with facts about the learner's parts."""
    exercise_evidence = evidence.gather(context, exercise, thorough=thorough)
    return replace(exercise_evidence, part_reviews=evidence.review_parts(context, exercise, exercise_evidence.parts))


def _quiz_score(context: Context) -> QuizScore | None:
    try:
        return quiz.score(context)
    except NewerFormat:
        raise
    except MissingError as error:  # the other points do not depend on the quiz
        context.watch(Note(text=f"the quiz is not counted: {error.what}; {error.hint}", level="warning"))
        return None


def list_pending(context: Context) -> list[Pending]:
    """Return every free text that this person has not judged yet, in the order of the course. For a reviewer, also return every
    part that copies a solution."""
    return [
        pending
        for exercise in context.catalog.exercises
        for pending in (*_list_texts(context, exercise), *_list_copies(context, exercise))
    ]


def _list_texts(context: Context, exercise: Exercise) -> Iterator[Pending]:
    for question, result in _read_answers(context, exercise):
        is_open = result.share is None or (result.self_judged and context.reviewed is not None)
        if result.verdict == "kept" and is_open:
            yield Pending(
                exercise=exercise.id,
                id=question.id,
                text=question.text,
                answer=result.answer or "",
                look_for=question.look_for or "",
            )


def _list_copies(context: Context, exercise: Exercise) -> Iterator[Pending]:
    """Yield the parts that copy a solution of the course and that the reviewer has not judged yet."""
    results = read_part_results(context, exercise) if context.reviewed else ()
    reviews = evidence.review_parts(context, exercise, results)
    for result in results:
        review = reviews.get(result.id)
        if review is not None and review.is_solution and review.share is None:
            file = context.paths.yours_file(exercise.id, result.file)
            text = f"{result.title}, {result.file}: its code is the same as that of a solution of the course. Does it count?"
            yield Pending(
                exercise=exercise.id, id=result.id, text=text, answer=file.read_text("utf-8", "replace"), is_code=True
            )


def judgement(
    context: Context, exercise_id: str, question: str, share: float, *, by: str, comment: str = ""
) -> tuple[str, Judgement]:
    """Return a person's judgement of one free text or part, for `keep`. `share` is the quality, from 0 to 1.

    Raises UnknownName, or UsageError if the share is out of range, the name is empty, or there is nothing to judge.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    ids = [*(item.id for item in exercise.questions), *(part.id for part in exercise.yours)]
    if question not in ids:
        raise UnknownName("question", question, ids, hint=f"questions and parts of {exercise_id}: {', '.join(ids)}")
    if not 0 <= share <= 1:
        raise UsageError(
            f"{100 * share:.0f} % is not from 0 to 100 %", hint=f"gpucourse grade --review --judge {exercise_id}/{question}=80"
        )
    if not by.strip() or not is_utf8(by + comment):
        raise UsageError("a judgement needs the name of the person who judges", hint="gpucourse grade --review --by NAME")
    if question in {part.id for part in exercise.yours}:
        digest = _find_part_digest(context, exercise, question)
    else:
        digest = _find_text_digest(context.paths, exercise, question)
    record = Judgement(question=question, share=share, by=by.strip(), at=now_utc(), comment=comment, answer_sha256=digest)
    return exercise_id, record


def _find_part_digest(context: Context, exercise: Exercise, part: str) -> str:
    """Return the digest of a part's handed-in file. Raises UsageError if there is no file, or if the learner would be the
    judge."""
    if context.reviewed is None:
        raise UsageError(
            f"{exercise.id} {part} is a part: an instructor judges it in your bundle",
            hint="gpucourse grade --bundle work.zip",
        )
    result = next(result for result in read_part_results(context, exercise) if result.id == part)
    if not result.sha256:
        raise UsageError(
            f"{exercise.id} {part} has not been handed in, or is still as the course delivered it", hint="gpucourse grade"
        )
    return result.sha256


def _find_text_digest(paths: WorkspacePaths, exercise: Exercise, question: str) -> str:
    """Return the digest of an answer. Raises UsageError if the question does not ask for free text, or has no answer."""
    exercise_id = exercise.id
    sheet = load_sheet(paths.answers(exercise.id), exercise)
    answer = sheet.answers.get(question) if sheet else None
    kind = next(candidate.kind for candidate in exercise.questions if candidate.id == question)
    if kind != "text":
        raise UsageError(
            f"{exercise_id} {question} is not free text: its answer is judged automatically", hint="gpucourse grade"
        )
    if answer is None or not str(answer).strip():
        raise UsageError(f"{exercise_id} {question} has no answer yet", hint=f"gpucourse answer {exercise_id}")
    return fingerprint(answer)


def keep(context: Context, judgements: Sequence[tuple[str, Judgement]]) -> None:
    """Add these judgements, each with its exercise, to the workspace of the person who judges. Raises StorageError if that
    fails.
    """
    work = context.reviewed
    with hold_lock((work.keeper if work else context.paths).lock("reviews"), "grade --review"):
        for exercise_id, judgement in judgements:
            path = work.keeper.peer_review(work.key, exercise_id) if work else context.paths.review(exercise_id)
            review = read_record(path, Review)
            write_record(path, Review(exercise=exercise_id, judgements=(*(review.judgements if review else ()), judgement)))


def name_learner(settings: Settings) -> str:
    """Return the learner's name: the workspace's owner, otherwise the login name."""
    return settings.owner or find_login()


def _read_answers(context: Context, exercise: Exercise) -> list[tuple[Question, AnswerResult]]:
    try:
        return list(zip(exercise.questions, evidence.answers_of(context, exercise), strict=True))
    except ManifestError:  # the sheet cannot be read, which the grade reports
        return []
