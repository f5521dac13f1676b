"""`quiz`: attempts at the quiz. Each answer is stored immediately, so that the learner can interrupt and continue an
attempt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.course.quiz import FILE, read_quiz
from gpucourse.errors import MissingError, UnknownName, UsageError
from gpucourse.grading.answers import judge
from gpucourse.model.answer import AnswerResult
from gpucourse.model.fields import Scalar
from gpucourse.model.quiz import Quiz, QuizQuestion, Tries
from gpucourse.model.score import QuizScore, Try
from gpucourse.units import now_utc
from gpucourse.workspace.files import read_record, write_record
from gpucourse.workspace.lock import hold_lock
from gpucourse.workspace.paths import WorkspacePaths

_MAX_TRIES = 1000  # each is judged again, and a bundle may contain any number of them


@dataclass(kw_only=True)
class Sitting:
    """A quiz in progress: its questions, every attempt so far, and the unfinished attempt. `questions` are those to ask: all,
    or those about one module."""

    quiz: Quiz
    questions: tuple[QuizQuestion, ...]
    tries: Tries
    open: Try

    @property
    def open_questions(self) -> tuple[QuizQuestion, ...]:
        """Return the questions to ask that have no answer."""
        return tuple(question for question in self.questions if question.id not in self.open.answers)

    @property
    def wrong_questions(self) -> tuple[QuizQuestion, ...]:
        """Return the questions to ask that were answered wrongly in this attempt."""
        wrong_ids = {result.id for result in results(self.quiz, self.open) if result.verdict == "failed"}
        return tuple(question for question in self.questions if question.id in wrong_ids)


def find_quiz(folders: CourseFolders) -> Quiz:
    """Return the quiz of the course. Raises MissingError if there is no quiz, and ManifestError if it has errors."""
    quiz = read_quiz(folders.modules)
    if quiz is None:
        raise MissingError("this course has no quiz", hint=f"write one: {folders.modules / FILE}")
    return quiz


def select_questions(context: Context, module_id: str | None) -> tuple[QuizQuestion, ...]:
    """Return the questions of the quiz, or only those about a module. Raises UnknownName for an unknown module, and
    MissingError if there are no questions.
    """
    quiz = find_quiz(context.folders)
    if module_id is None:
        return quiz.questions
    module = context.catalog.module(module_id)
    if not (questions := quiz.select(module.id)):
        numbers = [item.id for item in context.catalog.modules if quiz.select(item.id)]
        hint = f"gpucourse quiz {numbers[0]}; modules with questions: {', '.join(numbers)}" if numbers else "gpucourse quiz"
        raise MissingError(f"the quiz has no question about module {module.id}", hint=hint)
    return questions


def read_tries(paths: WorkspacePaths) -> Tries:
    """Return every attempt so far. Raises NewerFormat, or MissingError for a damaged file, which stays unchanged."""
    return read_record(paths.quiz, Tries) or Tries()


def sit(context: Context, *, module_id: str | None = None, is_retry: bool = False) -> Sitting | None:
    """Return the unfinished attempt, or a new attempt, with the questions to ask: all, or those about a module. Return None if
    an attempt is finished and `is_retry` is false. Raises the errors of `select_questions`."""
    quiz, tries, questions = find_quiz(context.folders), read_tries(context.paths), select_questions(context, module_id)
    if tries.tries and tries.tries[-1].ended is None:
        return Sitting(quiz=quiz, questions=questions, tries=tries, open=tries.tries[-1])
    if tries.tries and not is_retry:
        return None
    tries.tries.append(Try(started=now_utc()))
    return Sitting(quiz=quiz, questions=questions, tries=tries, open=tries.tries[-1])


def take(paths: WorkspacePaths, sitting: Sitting, submitted: Mapping[str, Scalar]) -> tuple[AnswerResult, ...]:
    """Store answers, and return their results. The attempt ends with its last answer. No answer can be changed.

    Raises UnknownName for an unknown question, and UsageError if an answer does not fit its question, if the question was
    answered before, or if the attempt is over. Nothing is then stored.
    """
    by_id = {question.id: question for question in sitting.questions}
    results: list[AnswerResult] = []
    with _update_try(paths, sitting):
        for name, answer in submitted.items():
            if name not in by_id:
                raise UnknownName("quiz question", name, by_id)
            if name in sitting.open.answers:
                raise UsageError(f"{name} was already answered in this attempt", hint="gpucourse quiz asks the others")
            try:
                results.append(judge_answer(by_id[name], answer))
            except ValueError as error:
                raise UsageError(f"the answer to {name}: {error}", hint="gpucourse quiz --list shows every question") from error
        sitting.open.answers.update({name: str(answer) for name, answer in submitted.items()})
        if all(question.id in sitting.open.answers for question in sitting.quiz.questions):
            sitting.open.ended = now_utc()
    return tuple(results)


def hand_in(paths: WorkspacePaths, sitting: Sitting) -> None:
    """End an attempt early. Unanswered questions then count as wrong. Raises UsageError if no question is answered: the end
    would show every answer."""
    if not sitting.open.answers:
        raise UsageError("no question is answered yet, so there is no attempt to finish", hint="gpucourse quiz")
    with _update_try(paths, sitting):
        sitting.open.ended = now_utc()


@contextmanager
def _update_try(paths: WorkspacePaths, sitting: Sitting) -> Iterator[None]:
    """Read the attempt from disk again, because another terminal may have added answers. Store it after the block has changed
    it."""
    with hold_lock(paths.lock("quiz"), "quiz"):
        tries, place = read_tries(paths), len(sitting.tries.tries) - 1
        if place >= len(tries.tries):
            tries.tries.append(sitting.open)
        if tries.tries[place].ended is not None:
            raise UsageError("this attempt was finished in another terminal", hint="gpucourse quiz shows its result")
        sitting.tries, sitting.open = tries, tries.tries[place]
        yield
        write_record(paths.quiz, tries)


def judge_answer(question: QuizQuestion, answer: Scalar) -> AnswerResult:
    """Return the result of an answer. A wrong answer gets no explanation, because the question will be asked again. Raises
    ValueError if the answer does not fit the kind of question."""
    result = judge(question, answer, {}, on_gpu=False)
    return replace(result, said="wrong", explanation="") if result.verdict == "failed" else result


def results(quiz: Quiz, attempt: Try) -> tuple[AnswerResult, ...]:
    """Return the result of every question in one attempt. An answer that its question no longer accepts counts as open."""
    answers: list[AnswerResult] = []
    for question in quiz.questions:
        try:
            answers.append(judge_answer(question, attempt.answers.get(question.id, "")))
        except ValueError:
            answers.append(judge(question, None, {}, on_gpu=False))
    return tuple(answers)


def score(context: Context) -> QuizScore | None:
    """Return the best finished attempt, or None without a quiz or a finished attempt."""
    quiz = read_quiz(context.folders.modules)
    attempts = [attempt for attempt in read_tries(context.paths).tries[-_MAX_TRIES:] if attempt.ended is not None]
    if quiz is None or not attempts:
        return None
    rights = [sum(result.verdict == "passed" for result in results(quiz, attempt)) for attempt in attempts]
    best_index = max(range(len(attempts)), key=lambda index: rights[index])
    return QuizScore(
        right=rights[best_index], of=len(quiz.questions), tries=len(attempts), ended=attempts[best_index].ended or ""
    )
