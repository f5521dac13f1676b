"""The command `answer`."""

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
from gpucourse.errors import CheckFailed, UsageError
from gpucourse.model.answer import AnswerResult

if TYPE_CHECKING:
    from gpucourse.learning.answer import Answering


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
    file: Annotated[Path | None, typer.Option("--file", help="Take the answers from this sheet (YAML).")] = None,
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
) -> None:
    """Answer an exercise's questions; your run checks the numbers."""
    from gpucourse.learning import answer as act
    from gpucourse.ui.views.answers import answers as view

    context = session.context
    answering = act.begin(context, exercise, run)
    if template:
        path = act.template(context.paths, answering)
        session.console.document(SheetFile(sheet=path))
        session.console.note(f"fill in {path}, then: gpucourse answer {exercise}")
        return
    sheet = context.paths.answers(answering.exercise.id)
    if file is not None:
        results = act.take_file(context, answering, file)
    elif settings:
        results = act.take(context, answering, read_settings(settings, f"gpucourse answer {exercise} --set NAME=ANSWER"))
    elif can_answer(session):
        if sheet.is_file():
            act.take_sheet(context, answering.exercise)
        results = _ask_questions(session, answering)
    elif sheet.is_file() or session.options.json:
        results = act.take_sheet(context, answering.exercise)
    else:
        raise UsageError(
            "not a terminal, and no answers were given",
            hint=f"gpucourse answer {exercise} --set NAME=ANSWER; or --template, then --file",
        )
    session.present(
        view(answering.exercise, results, run=answering.pinned, mode=answering.mode, next_step=session.find_step()),
        Answers(exercise=answering.exercise.id, run=answering.pinned, answers=list(results)),
    )
    if wrong_ids := [result.id for result in results if result.verdict == "failed"]:
        raise CheckFailed(
            f"{len(wrong_ids)} of {len(results)} answers are wrong: {', '.join(wrong_ids)}",
            hint=f"gpucourse hint {exercise}, then: gpucourse answer {exercise}",
        )


def _ask_questions(session: Session, answering: Answering) -> tuple[AnswerResult, ...]:
    """Ask the questions in order, starting with the first open one, and store each answer immediately. For a question that a
    run answers, show the command for that run."""
    from gpucourse.learning import answer as act
    from gpucourse.learning.evidence import answers_of
    from gpucourse.ui.views.answers import judgement, mutation, question

    context, questions = session.context, answering.exercise.questions
    results = answers_of(context, answering.exercise)
    first = find_first_open(results)
    session.console.note(
        "Enter leaves a question unchanged; Ctrl-D ends. To answer in an editor: "
        f"gpucourse answer {answering.exercise.id} --template"
    )
    if first:
        session.console.note(f"Question {first + 1} is the first to answer; --set NAME=ANSWER changes an earlier answer.")
    for number, item in enumerate(questions, 1):
        if item.kind == "mutation":
            if results[number - 1].verdict != "passed":
                session.console.show(mutation(item, number, len(questions), answering.exercise.mutation_command))
            continue
        if number <= first:
            continue
        earlier = answering.answers.get(item.id)
        session.console.show(question(item, number, len(questions), earlier_answer=None if earlier is None else str(earlier)))
        line = ask_valid(session, f"{item.unit or 'answer'}> ", partial(act.judge_answer, context.paths, answering, item))
        if line is None:
            break
        if line:
            results = act.take(context, answering, {item.id: line})
            session.console.show(judgement(next(result for result in results if result.id == item.id)))
    return answers_of(context, answering.exercise)


def find_first_open(results: Sequence[AnswerResult]) -> int:
    """Return the index of the first question to ask: the first without an answer, else the first with a wrong answer, else 0.
    Questions that a run answers are skipped."""
    questions = [(place, result.verdict) for place, result in enumerate(results) if result.kind != "mutation"]
    for verdict in ("open", "failed"):
        if places := [place for place, answer in questions if answer == verdict]:
            return places[0]
    return 0
