"""The command `quiz`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.asking import ask, somebody_there
from gpucourse.cli.flags import JsonFlag, pairs
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, Interrupted, UsageError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import QuizScore, Try

if TYPE_CHECKING:
    from gpucourse.learning.quiz import Sitting


class QuestionDocument(JsonDocument):
    """A question of the quiz, without its key."""

    id: str
    lesson: str
    kind: str
    text: str
    unit: str
    options: list[str]


class QuizQuestions(JsonDocument):
    """`quiz --list`."""

    title: str
    questions: list[QuestionDocument]


class QuizState(JsonDocument):
    """`quiz`: the newest attempt, its answers, and the best score."""

    finished: bool
    right: int
    number_of_questions: int = field(name="of")
    best: QuizScore | None
    answers: list[AnswerResult]
    questions: list[QuestionDocument]
    tries: list[Try]


def quiz(
    ctx: typer.Context,
    restart: Annotated[bool, typer.Option("--again", help="Start a new attempt.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="One answer: --set blocks=40")] = None,
    end: Annotated[bool, typer.Option("--end", help="Finish the attempt; unanswered counts as wrong.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List every question, and stop.")] = False,
    json: JsonFlag = False,
) -> int:
    """Questions about the lessons; stop and continue at any time."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.answers import judgement

    session = session_of(ctx)
    context, console = session.context, session.console
    if list_:
        return _list(session, json=json)
    sitting = act.sit(context, again=restart)
    if sitting is None:
        if settings or end:
            raise UsageError("the last attempt is finished", hint="gpucourse quiz --again starts another")
        return _show(session, json=json)
    if settings:
        for result in act.take(context.paths, sitting, pairs(settings, "gpucourse quiz --set NAME=ANSWER")):
            console.show(judgement(result))
    elif end:
        act.give_in(context.paths, sitting)
    elif somebody_there(session):
        try:
            _ask(session, sitting)
        except KeyboardInterrupt:
            raise Interrupted("the quiz is interrupted; every answer so far is kept", hint="gpucourse quiz") from None
    elif not json:
        raise UsageError("the quiz needs a terminal", hint="gpucourse quiz --list, then gpucourse quiz --set NAME=ANSWER")
    return _show(session, json=json)


def _list(session: Session, *, json: bool) -> int:
    from gpucourse.learning.quiz import the_quiz
    from gpucourse.ui.views.quiz import questions

    quiz = the_quiz(session.context.folders)
    if json:
        session.console.document(QuizQuestions.of(quiz))
    session.console.show(questions(quiz))
    return ExitCode.DONE


def _ask(session: Session, sitting: Sitting) -> None:
    """Ask the open questions; each answer is stored at once."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.answers import judgement
    from gpucourse.ui.views.quiz import question as question_view

    questions = sitting.quiz.questions
    session.console.note("Type the letter, or the number. Enter leaves a question for later, Ctrl-D ends; nothing is lost.")
    for question in sitting.open_questions:
        session.console.show(question_view(sitting.quiz, question, questions.index(question) + 1))
        while (line := ask(session, f"{question.unit or 'answer'}> ")) is not None and line:
            try:
                act.judge_answer(question, line)
            except ValueError as error:
                session.console.warn(str(error))
                continue
            session.console.show(judgement(act.take(session.context.paths, sitting, {question.id: line})[0]))
            break
        if line is None:
            return


def _show(session: Session, *, json: bool) -> int:
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views import quiz as views

    quiz, tries = act.the_quiz(session.context.folders), act.read_tries(session.context.paths)
    last = tries.tries[-1] if tries.tries else None
    results = act.results(quiz, last) if last else ()
    right = sum(item.verdict == "passed" for item in results)
    if json:
        state = QuizState.of(
            quiz,
            finished=bool(last and last.ended),
            right=right,
            number_of_questions=len(quiz.questions),
            best=act.score(session.context),
            answers=[item for item in results if item.verdict != "open"],
            tries=tries.tries,
        )
        session.console.document(state)
    elif last and last.ended:
        session.console.show(views.result(quiz, results, tries))
    else:
        session.console.show(views.open_attempt(quiz, len(last.answers) if last else 0, right))
    return ExitCode.DONE
