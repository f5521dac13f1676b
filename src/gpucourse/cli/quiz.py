"""The command `quiz`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.asking import ask_valid, can_answer
from gpucourse.cli.flags import read_settings
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, UsageError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import QuizScore, Try

if TYPE_CHECKING:
    from gpucourse.learning.quiz import Sitting


class QuestionDocument(JsonDocument):
    """A question of the quiz, without its answer key."""

    id: str
    lesson: str
    kind: str
    text: str
    unit: str
    options: list[str]


class QuizQuestions(JsonDocument):
    """The output of `quiz --list`."""

    title: str
    questions: list[QuestionDocument]


class QuizState(JsonDocument):
    """The output of `quiz`: the newest attempt, its answers, and the best score."""

    finished: bool
    right: int
    number_of_questions: int = field(name="of")
    best: QuizScore | None
    answers: list[AnswerResult]
    questions: list[QuestionDocument]
    tries: list[Try]


def quiz(
    session: Session,
    restart: Annotated[bool, typer.Option("--again", help="Start a new attempt.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="One answer: --set blocks=40")] = None,
    end: Annotated[bool, typer.Option("--end", help="Finish the attempt; unanswered questions count as wrong.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List every question, and stop.")] = False,
) -> None:
    """Answer questions about the lessons; stop and continue at any time."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views import quiz as views
    from gpucourse.ui.views.answers import judgement

    context, console = session.context, session.console
    if list_:
        questions = act.the_quiz(context.folders)
        session.present(views.questions(questions), QuizQuestions.build(questions))
        return
    sitting = act.sit(context, is_retry=restart)
    if sitting is None:
        if settings or end:
            raise UsageError("the last attempt is finished", hint="gpucourse quiz --again starts another")
    elif settings:
        for result in act.take(context.paths, sitting, read_settings(settings, "gpucourse quiz --set NAME=ANSWER")):
            console.show(judgement(result))
    elif end:
        act.give_in(context.paths, sitting)
    elif can_answer(session):
        try:
            _ask(session, sitting)
        except KeyboardInterrupt:
            raise Interrupted("the quiz is interrupted; every answer so far is kept", hint="gpucourse quiz") from None
    elif not session.options.json:
        raise UsageError("the quiz needs a terminal", hint="gpucourse quiz --list, then gpucourse quiz --set NAME=ANSWER")
    _show(session)


def _ask(session: Session, sitting: Sitting) -> None:
    """Ask the open questions, and store each answer immediately."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.answers import judgement
    from gpucourse.ui.views.quiz import question as question_view

    questions = sitting.quiz.questions
    session.console.note("Type the letter, or the number. Enter leaves a question for later; Ctrl-D ends. Nothing is lost.")
    for question in sitting.open_questions:
        session.console.show(question_view(sitting.quiz, question, questions.index(question) + 1))
        line = ask_valid(session, f"{question.unit or 'answer'}> ", partial(act.judge_answer, question))
        if line is None:
            return
        if line:
            session.console.show(judgement(act.take(session.context.paths, sitting, {question.id: line})[0]))


def _show(session: Session) -> None:
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views import quiz as views

    quiz, tries = act.the_quiz(session.context.folders), act.read_tries(session.context.paths)
    last = tries.tries[-1] if tries.tries else None
    results = act.results(quiz, last) if last else ()
    right_count = sum(item.verdict == "passed" for item in results)
    state = QuizState.build(
        quiz,
        finished=bool(last and last.ended),
        right=right_count,
        number_of_questions=len(quiz.questions),
        best=act.score(session.context),
        answers=[item for item in results if item.verdict != "open"],
        tries=tries.tries,
    )
    if last and last.ended:
        view = views.result(quiz, results, tries)
    else:
        view = views.open_attempt(quiz, len(last.answers) if last else 0, right_count)
    session.present(view, state)
