"""The command `quiz`: asks questions about the lessons, and stores the attempts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.asking import ask_valid, can_answer
from gpucourse.cli.flags import read_settings
from gpucourse.cli.output import JsonDocument, field
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, UsageError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.score import QuizScore, Try
from gpucourse.ui.tables import Paragraph, View

if TYPE_CHECKING:
    from gpucourse.learning.quiz import Sitting
    from gpucourse.model.quiz import Quiz, QuizQuestion


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
    """The output of `quiz`: the newest attempt, its answers, and the best score. With a module, `right`, `of`, `answers` and
    `questions` cover only its questions.
    """

    module: str | None
    finished: bool
    right: int
    number_of_questions: int = field(name="of")
    best: QuizScore | None
    answers: list[AnswerResult]
    questions: list[QuestionDocument]
    tries: list[Try]


def quiz(
    session: Session,
    module: Annotated[
        str | None,
        typer.Argument(help="Only the questions about this module: 3", autocompletion=complete.modules),
    ] = None,
    restart: Annotated[bool, typer.Option("--again", help="Start a new attempt.")] = False,
    settings: Annotated[list[str] | None, typer.Option("--set", help="One answer: --set blocks=40")] = None,
    end: Annotated[bool, typer.Option("--end", help="Finish the attempt; unanswered questions count as wrong.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List every question, and stop.")] = False,
) -> None:
    """Answer questions about the lessons; stop and continue at any time."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views import quiz as views
    from gpucourse.ui.views.answers import judgement

    module = session.require_module(module).id if module else None
    context, console = session.context, session.console
    command = "gpucourse quiz" + (f" {module}" if module else "")
    if list_:
        quiz = act.find_quiz(context.folders)
        questions = act.select_questions(context, module)
        session.present(
            views.questions(quiz, questions), QuizQuestions.build(title=quiz.title, questions=questions), paged=True
        )
        return
    if end and module:
        raise UsageError("--end finishes the whole attempt, not only a module", hint="gpucourse quiz --end")
    sitting = act.sit(context, module_id=module, is_retry=restart)
    if sitting is None and (settings or end):
        raise UsageError("the last attempt is finished", hint=f"{command} --again starts another")
    if settings and sitting:
        for result in act.take(context.paths, sitting, read_settings(settings, f"{command} --set NAME=ANSWER")):
            console.show(judgement(result))
    elif end and sitting:
        act.hand_in(context.paths, sitting)
    elif can_answer(session):
        try:
            _ask(session, sitting, module)
        except KeyboardInterrupt:
            raise Interrupted("the quiz is interrupted; every answer so far is kept", hint=command) from None
    elif sitting and not session.options.json:
        raise UsageError("the quiz needs a terminal", hint=f"{command} --list, then {command} --set NAME=ANSWER")
    _show(session, module)


def _ask(session: Session, sitting: Sitting | None, module: str | None) -> None:
    """Ask the open questions, and store each answer immediately. Then ask again, for practice, those that were answered
    wrongly. If every question about a module has an answer, ask all of them for practice.
    """
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.answers import judgement

    questions = act.select_questions(session.context, module)
    ask = partial(_ask_question, session, act.find_quiz(session.context.folders), questions)
    if sitting is None or not sitting.open_questions:
        if module is not None:
            practice = Paragraph(
                "You have answered these questions in this attempt. They are now practice, and no points change.", "dim"
            )
            session.console.show(View(blocks=[practice]))
            _practise(session, questions, ask)
        return
    session.console.note(
        "Type the letter, or the number. Enter leaves a question for later; Ctrl-D ends. The first answer to a question counts."
    )
    for question in sitting.open_questions:
        line = ask(question)
        if line is None:
            return
        if line:
            session.console.show(judgement(act.take(session.context.paths, sitting, {question.id: line})[0]))
    if wrong_questions := sitting.wrong_questions:
        announcement = Paragraph("Questions that you answered wrong are asked again, for practice. No points change.", "dim")
        session.console.show(View(blocks=[announcement]))
        _practise(session, wrong_questions, ask)


def _practise(session: Session, questions: Sequence[QuizQuestion], ask: Callable[[QuizQuestion], str | None]) -> None:
    """Ask the questions. Ask those that were answered wrongly again, with their explanations, until every answer is right.
    Store nothing."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.answers import judgement

    while questions:
        wrong_questions: list[QuizQuestion] = []
        for question in questions:
            line = ask(question)
            if line is None:
                return
            if line:
                result = act.judge_answer(question, line)
                session.console.show(judgement(replace(result, explanation=question.explanation)))
                wrong_questions += [question] if result.verdict == "failed" else []
        questions = wrong_questions


def _ask_question(session: Session, quiz: Quiz, questions: Sequence[QuizQuestion], question: QuizQuestion) -> str | None:
    """Show a question with its number, and return the typed answer: an empty string for Enter, None if the person ends
    the input."""
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views.quiz import question as view

    session.console.show(view(quiz, question, questions.index(question) + 1, len(questions)))
    return ask_valid(session, f"{question.unit or 'answer'}> ", partial(act.judge_answer, question))


def _show(session: Session, module: str | None) -> None:
    from gpucourse.learning import quiz as act
    from gpucourse.ui.views import quiz as views

    quiz, tries = act.find_quiz(session.context.folders), act.read_tries(session.context.paths)
    questions = act.select_questions(session.context, module)
    ids = {question.id for question in questions}
    last = tries.tries[-1] if tries.tries else None
    results = [result for result in (act.results(quiz, last) if last else ()) if result.id in ids]
    right_count = sum(item.verdict == "passed" for item in results)
    state = QuizState.build(
        quiz,
        module=module,
        finished=bool(last and last.ended),
        right=right_count,
        number_of_questions=len(questions),
        best=act.score(session.context),
        answers=[item for item in results if item.verdict != "open"],
        questions=questions,
        tries=tries.tries,
    )
    answer_count = len(last.answers) if last else 0
    if module is not None:
        view = views.module_result(session.context.catalog.module(module), results, quiz, answer_count)
    elif last and last.ended:
        view = views.result(quiz, results, tries)
    else:
        view = views.open_attempt(quiz, answer_count, right_count)
    session.present(view, state, place=module or "")
