"""`answer`: accepts the learner's answers, judges them immediately if possible, and stores them in `deliverables/`. The
learner's own judgement of a free text counts until an instructor judges the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.context import Context
from gpucourse.course.answer_sheet import Sheet, load_sheet, read_sheet, write_sheet
from gpucourse.course.answer_sheet import set_damaged_sheet_aside as set_aside
from gpucourse.errors import MissingError, UnknownName, UsageError
from gpucourse.grading.answers import judge
from gpucourse.learning import attempts, evidence, grade
from gpucourse.model.answer import AnswerResult
from gpucourse.model.fields import Scalar
from gpucourse.model.manifest import Exercise
from gpucourse.model.questions import Question
from gpucourse.model.record import RunRecord
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

QUALITIES = {"yes": 1.0, "partly": 0.5, "no": 0.0}
"""The words with which learners judge their own text (does it say what a good answer says?), each with its quality from 0 to
1."""


@dataclass(kw_only=True)
class Answering:
    """The questions of one exercise, with the answers so far and the run that numbers are compared with."""

    exercise: Exercise
    record: RunRecord | None
    pinned: str | None
    answers: dict[str, Scalar] = field(default_factory=dict)

    @property
    def mode(self) -> str:
        """Return the mode of the run that the answers are about, or an empty string if there is no run."""
        return self.record.mode if self.record else ""


def begin(context: Context, exercise_id: str, run: str | None = None) -> Answering:
    """Return the questions of an exercise, with the answers so far. They are about `run`, or by default about the newest good
    run.

    Raises UnknownName for an unknown exercise or run, UsageError if the exercise has no questions, and MissingError if a
    question needs a run and none has succeeded yet.
    """
    _, exercise = context.catalog.exercise(exercise_id)
    if not exercise.questions:
        raise UsageError(f"{exercise.id} has no questions", hint=f"gpucourse check {exercise.id}")
    record = evidence.find_newest_candidate(context.paths, exercise)
    sheet = load_sheet(context.paths.answers(exercise.id), exercise)
    if record is None and any(question.reads for question in exercise.questions):
        raise MissingError(
            f"the questions of {exercise.id} are about your own run, but no run has succeeded yet",
            hint=f"gpucourse run {exercise.id}",
        )
    if run is not None:
        record = evidence.find_good_run(context.paths, exercise, run)
    pinned = record.id if run and record else sheet.run if sheet else None
    return Answering(exercise=exercise, record=record, pinned=pinned, answers=_list_given_answers(sheet))


def question_of(answering: Answering, name: str) -> Question:
    """Return the question of that name. Raises UnknownName with similar names."""
    by_id = {question.id: question for question in answering.exercise.questions}
    if name not in by_id:
        exercise = answering.exercise.id
        raise UnknownName("question", name, by_id, hint=f"questions of {exercise}: {', '.join(by_id)}")
    return by_id[name]


def judge_answer(paths: WorkspacePaths, answering: Answering, question: Question, answer: Scalar) -> AnswerResult:
    """Return the result that an answer would have.

    Raises ValueError, with the reason, if the answer does not fit the kind of question. Raises MissingError if the question
    needs files of the run that are damaged or have changed since it ended.
    """
    needs_run = bool(question.reads) or question.evidence == "gpu"
    run_evidence, gpu = evidence.read_run_evidence(paths, answering.record) if answering.record and needs_run else (None, False)
    return judge(question, answer, run_evidence, on_gpu=gpu)


def take(context: Context, answering: Answering, submitted: Mapping[str, Scalar | None]) -> tuple[AnswerResult, ...]:
    """Store answers, and return every question with the result of its answer. None withdraws an answer.

    Raises UnknownName for an unknown question, and UsageError if an answer does not fit the kind of its question. In both
    cases, nothing is stored.
    """
    questions = {name: question_of(answering, name) for name in submitted}
    for name, answer in submitted.items():
        try:
            if answer is not None:
                judge_answer(context.paths, answering, questions[name], answer)
        except ValueError as error:
            exercise = answering.exercise
            mutation = questions[name].kind == "mutation"
            hint = exercise.mutation_command if mutation else f"gpucourse show {exercise.id} shows the question"
            raise UsageError(f"the answer to {exercise.id} {name}: {error}", hint=hint) from error
    with hold_lock(context.paths.lock("answers"), f"answer {answering.exercise.id}"):
        exercise = answering.exercise
        path = context.paths.answers(exercise.id)
        answering.answers = _list_given_answers(load_sheet(path, exercise))  # another terminal may have answered since
        new_answers = {name: value for name, value in submitted.items() if answering.answers.get(name) != value}
        if answering.record and (answering.pinned is None or any(questions[name].reads for name in new_answers)):
            answering.pinned = answering.record.id
        all_answers = answering.answers | {name: value for name, value in submitted.items() if value is not None}
        answering.answers = {name: value for name, value in all_answers.items() if submitted.get(name, value) is not None}
        write_sheet(path, exercise, answering.answers, answering.pinned)
    return take_sheet(context, answering.exercise)


def take_sheet(context: Context, exercise: Exercise) -> tuple[AnswerResult, ...]:
    """Submit the answers in the sheet of `deliverables/`, and return every question with the result of its answer. Raises
    ManifestError if the sheet has errors, and StorageError if the answers cannot be stored.
    """
    results = evidence.answers_of(context, exercise, in_sheet=True)
    record = evidence.find_answered_run(context.paths, exercise)
    attempts.add_attempts(context.paths, exercise.id, results, record.id if record else None)
    return evidence.answers_of(context, exercise)


def take_file(context: Context, answering: Answering, path: Path) -> tuple[AnswerResult, ...]:
    """Store the answers of a sheet, and return their results. Nothing is stored if this raises ManifestError or UsageError."""
    sheet = read_sheet(path, answering.exercise)
    if sheet.run is not None:
        answering.record = evidence.find_good_run(context.paths, answering.exercise, sheet.run)
        answering.pinned = answering.record.id
    return take(context, answering, sheet.answers)


def find_new(old_results: Sequence[AnswerResult], new_results: Sequence[AnswerResult]) -> tuple[AnswerResult, ...]:
    """Return the results that a command changed."""
    return tuple(new for old, new in zip(old_results, new_results, strict=True) if new != old)


def list_texts(results: Sequence[AnswerResult]) -> tuple[AnswerResult, ...]:
    """Return the free texts that the learner can judge: those without a judgement or, if every text has one, those that no
    reviewer has judged."""
    texts = [result for result in results if result.verdict == "kept" and (result.share is None or result.self_judged)]
    return tuple([result for result in texts if result.share is None] or texts)


def read_quality(word: str) -> float:
    """Return the quality, from 0 to 1, that a word of QUALITIES stands for. The first letters of a word suffice. Raises
    ValueError for any other text.
    """
    qualities = [quality for name, quality in QUALITIES.items() if word and name.startswith(word.strip().lower())]
    if len(qualities) != 1:
        raise ValueError(f"'{word}' is not one of {', '.join(QUALITIES)}")
    return qualities[0]


def review(context: Context, exercise: Exercise, words: Mapping[str, object]) -> tuple[AnswerResult, ...]:
    """Store the learner's own judgements of free texts, as words of QUALITIES, and return every question with its result.

    Raises UnknownName for an unknown question, and UsageError if a word is not one of QUALITIES or if there is no text to
    judge. In both cases, nothing is stored.
    """
    judgements = []
    author = grade.name_learner(context.settings)
    for name, word in words.items():
        try:
            quality = read_quality(str(word))
        except ValueError as error:
            hint = f"gpucourse answer {exercise.id} --review --set {name}=partly"
            raise UsageError(f"the review of {exercise.id} {name}: {error}", hint=hint) from error
        judgements.append(grade.judgement(context, exercise.id, name, quality, by=author))
    grade.keep(context, judgements)
    return evidence.answers_of(context, exercise)


def set_damaged_sheet_aside(context: Context, exercise_id: str) -> Path | None:
    """Rename the exercise's sheet if it has errors, and return its new name. Raises UnknownName for an unknown exercise, and
    StorageError if the sheet cannot be renamed.
    """
    exercise = context.catalog.exercise(exercise_id)[1]
    with hold_lock(context.paths.lock("answers"), f"answer {exercise.id}"):
        return set_aside(context.paths.answers(exercise.id), exercise)


def template(paths: WorkspacePaths, answering: Answering) -> Path:
    """Write the answer sheet with the answers so far, and return its path."""
    run = answering.pinned or (answering.record.id if answering.record else None)
    path = paths.answers(answering.exercise.id)
    write_sheet(path, answering.exercise, answering.answers, run)
    return path


def _list_given_answers(sheet: Sheet | None) -> dict[str, Scalar]:
    return {name: value for name, value in sheet.answers.items() if value is not None} if sheet else {}
