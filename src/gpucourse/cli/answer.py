"""The command `answer`: asks an exercise's questions, stores the answers and shows their results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli import complete
from gpucourse.cli.asking import ask_valid, can_answer
from gpucourse.cli.flags import read_settings
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, UsageError
from gpucourse.model.answer import AnswerResult
from gpucourse.model.questions import Question

if TYPE_CHECKING:
    from gpucourse.learning.answer import Answering
    from gpucourse.model.manifest import Exercise


class Answers(JsonDocument):
    """The output of `answer`: every question with its answer. `run` is the run to compare numbers with, or null if no run was
    named."""

    exercise: str
    run: str | None
    answers: list[AnswerResult]


class SheetFile(JsonDocument):
    """The output of `answer --template`: the file to fill in."""

    sheet: Path


def answer(
    session: Session,
    exercise: Annotated[str, typer.Argument(help="The number of an exercise: 3.2", autocompletion=complete.exercises)],
    file: Annotated[Path | None, typer.Option("--file", help="Read the answers from this sheet (YAML).")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="One answer: --set speedup=1.9", autocompletion=complete.questions)
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="The run that your numbers come from (default: the newest).", autocompletion=complete.runs_of_exercise
        ),
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Write the sheet to fill in, and stop.")] = False,
    review: Annotated[
        bool,
        typer.Option("--review", help="Judge your own free text: yes, partly or no. With --set, without a prompt: why=yes."),
    ] = False,
) -> int:
    """Answer an exercise's questions; your run checks the numbers."""
    from gpucourse.learning import answer as act
    from gpucourse.learning.evidence import answers_of
    from gpucourse.ui.views.answers import answers as view

    session.require_exercise(exercise)
    context = session.context
    if review and (file or template):
        raise UsageError("--review cannot be combined with --file or --template", hint=f"gpucourse answer {exercise} --review")
    if template and (damaged := act.set_damaged_sheet_aside(context, exercise)) is not None:
        session.console.warn(f"the damaged sheet is kept as {damaged}; copy from it what you still need")
    answering = act.begin(context, exercise, run)
    number = answering.exercise.id
    if template:
        path = act.template(context.paths, answering)
        session.console.document(SheetFile(sheet=path))
        session.console.note(f"fill in {path}, then: gpucourse answer {number}")
        return ExitCode.DONE
    earlier_results = answers_of(context, answering.exercise)
    results, new_results = _review(session, answering, settings) if review else _submit(session, answering, file, settings)
    if session.console.verbose:
        new_results = results
    elif new_results is None:
        new_results = act.find_new(earlier_results, results)
    wrong_ids = [] if review else [result.id for result in results if result.verdict == "failed"]
    if wrong_ids:
        verb = "is" if len(wrong_ids) == 1 else "are"
        session.console.warn(f"{len(wrong_ids)} of {len(results)} answers {verb} wrong: {', '.join(wrong_ids)}")
    session.present(
        view(
            answering.exercise,
            results,
            new_results=new_results,
            brief=bool(settings),
            run=answering.pinned,
            mode=answering.mode,
        ),
        Answers(exercise=number, run=answering.pinned, answers=list(results)),
        place=number,
    )
    return ExitCode.CHECK_FAILED if wrong_ids else ExitCode.DONE


Outcome = tuple[Sequence[AnswerResult], Sequence[AnswerResult] | None]
"""Every question with its result, and the results to explain. If the second item is None, the results that the command changed
are explained."""


def _submit(session: Session, answering: Answering, file: Path | None, settings: list[str] | None) -> Outcome:
    """Store the answers from a sheet, from the options or from the terminal, and return what to show."""
    from gpucourse.learning import answer as act

    context, number = session.context, answering.exercise.id
    sheet = context.paths.answers(number)
    if file is not None:
        return act.take_file(context, answering, file), None
    if settings:
        submitted = read_settings(settings, f"gpucourse answer {number} --set NAME=ANSWER")
        results = act.take(context, answering, submitted)
        return results, [result for result in results if result.id in submitted]
    if can_answer(session):
        return _ask_questions(session, answering), ()
    if sheet.is_file() or session.options.json:
        return act.take_sheet(context, answering.exercise), None
    raise UsageError(
        "there is no terminal, and no answers were typed",
        hint=f"gpucourse answer {number} --set NAME=ANSWER; or --template, then --file",
    )


def _ask_questions(session: Session, answering: Answering) -> tuple[AnswerResult, ...]:
    """Ask each question that has no answer yet, in order, and store each answer immediately. Return the results. For a question
    that a run answers, show the command for that run."""
    from gpucourse.learning import answer as act
    from gpucourse.learning.evidence import answers_of
    from gpucourse.ui.text import format_count
    from gpucourse.ui.views.answers import answers, judgement, mutation

    context, exercise = session.context, answering.exercise
    earlier_results = results = answers_of(context, exercise)
    if context.paths.answers(exercise.id).is_file():
        results = act.take_sheet(context, exercise)
    if new_results := act.find_new(earlier_results, results):
        session.console.show(answers(exercise, results, new_results=new_results, brief=True))
    if not (open_ids := list_open(results)):
        _ask_qualities(session, exercise, [result for result in results if result.verdict == "kept" and result.share is None])
        return answers_of(context, exercise)
    session.console.note(
        f"{format_count(len(results), 'question')}, {len(open_ids)} to answer here. "
        f"Enter leaves a question unchanged; Ctrl-D ends. In an editor: gpucourse answer {exercise.id} --template"
    )
    for number, item in enumerate(exercise.questions, 1):
        if item.kind == "mutation":
            is_answered = results[number - 1].verdict == "passed" or results[number - 1].final
            view = mutation(item, number, len(results), exercise.mutation_command, is_answered=is_answered)
            session.console.show(view)
        elif item.id in open_ids:
            line = _ask_question(session, answering, item, number)
            if line:
                result = act.take(context, answering, {item.id: line})[number - 1]
                session.console.show(judgement(result))
                if result.verdict == "kept" and not _ask_quality(session, exercise, result):
                    line = None
            if line is None:
                break
    return answers_of(context, exercise)


def list_open(results: Sequence[AnswerResult]) -> list[str]:
    """Return the questions to ask: those without an answer, and those with a wrong answer and an attempt left. Questions that a
    run answers are left out."""
    return [
        result.id
        for result in results
        if result.kind != "mutation" and (result.verdict == "open" or (result.verdict == "failed" and not result.final))
    ]


def _ask_question(session: Session, answering: Answering, item: Question, number: int) -> str | None:
    """Show a question, and return the typed answer. Return an empty string for Enter, None if the person ends the input."""
    from gpucourse.learning import answer as act
    from gpucourse.ui.views.answers import question

    earlier = answering.answers.get(item.id)
    count = len(answering.exercise.questions)
    session.console.show(question(item, number, count, earlier_answer=None if earlier is None else str(earlier)))
    return ask_valid(session, f"{item.unit or 'answer'}> ", partial(act.judge_answer, session.context.paths, answering, item))


def _ask_quality(session: Session, exercise: Exercise, result: AnswerResult) -> bool:
    """Ask the learner to judge a free text, and store the judgement. Return False if the person ends the input."""
    from gpucourse.learning import answer as act

    request = "does your answer say this?" if result.look_for else "is your answer right?"
    line = ask_valid(session, f"{request} {', '.join(act.QUALITIES)}> ", act.read_quality)
    if line:
        act.review(session.context, exercise, {result.id: line})
    return line is not None


def _ask_qualities(session: Session, exercise: Exercise, texts: Sequence[AnswerResult]) -> None:
    """Show each free text next to what a good answer says, and ask the learner to judge it."""
    from gpucourse.ui.views.answers import text

    if texts:
        session.console.note(
            "Your judgement counts half until an instructor judges the text. Enter leaves a text for later; Ctrl-D ends."
        )
    for number, result in enumerate(texts, 1):
        session.console.show(text(exercise, result, number, len(texts)))
        if not _ask_quality(session, exercise, result):
            return


def _review(session: Session, answering: Answering, settings: list[str] | None) -> Outcome:
    """Store the learner's judgements of free texts, from the options or from the terminal, and return what to show."""
    from gpucourse.learning import answer as act
    from gpucourse.learning.evidence import answers_of

    exercise = answering.exercise
    command = f"gpucourse answer {exercise.id} --review --set"
    results = answers_of(session.context, exercise)
    texts = act.list_texts(results)
    if settings:
        words = read_settings(settings, f"{command} NAME=yes")
        results = act.review(session.context, exercise, words)
        return results, [result for result in results if result.id in words]
    if not texts:
        raise UsageError(f"{exercise.id} has no free text to review", hint=f"gpucourse answer {exercise.id}")
    if not can_answer(session):
        raise UsageError("not a terminal, and no judgement was typed", hint=f"{command} {texts[0].id}=yes (or partly, or no)")
    _ask_qualities(session, exercise, texts)
    return answers_of(session.context, exercise), ()
