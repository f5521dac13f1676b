"""Read the prediction before a run, from the option --predict or from an answer at the terminal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpucourse.cli.asking import ask_valid, can_answer
from gpucourse.cli.session import Session
from gpucourse.errors import MissingError, UnknownName, UsageError
from gpucourse.model.record import GivenPrediction

if TYPE_CHECKING:
    from gpucourse.model.manifest import Exercise
    from gpucourse.model.questions import Prediction
    from gpucourse.runs.resolve import RunRequest


def read_prediction(exercise: Exercise, text: str) -> GivenPrediction:
    """Read the prediction after --predict, written as `NAME=VALUE`. Raises UsageError or UnknownName if it is not valid."""
    question = exercise.predict
    if question is None:
        reason = f": {exercise.no_predict}" if exercise.no_predict else ""
        raise UsageError(f"{exercise.id} asks for no prediction{reason}", hint=f"gpucourse run {exercise.id}")
    name, equals, value = (word.strip() for word in text.partition("="))
    example = f"gpucourse run {exercise.id} --predict {question.id}={'a' if question.choices else 'NUMBER'}"
    if not equals or not value:
        raise UsageError(f"--predict {text}: not of the form {question.id}=VALUE", hint=example)
    if name != question.id:
        raise UnknownName("prediction", name, [question.id], hint=example)
    try:
        check_prediction(question, value)
    except ValueError as error:
        raise UsageError(f"--predict {name}: {error}", hint=example) from error
    return GivenPrediction(id=question.id, answer=value)


def check_prediction(question: Prediction, answer: str) -> None:
    """Check that an answer is a number or an option, as the prediction needs. Raises ValueError, with the reason, if it is
    not."""
    from gpucourse.grading.answers import compare

    compare(question, answer, None, on_gpu=False)


def ask_prediction(session: Session, run_request: RunRequest) -> GivenPrediction | None:
    """Ask the person at the terminal what the run will measure. Return None if the exercise has no prediction, if there is no
    terminal, or if the person presses Enter.

    Raises UsageError or UnknownName for parameters that the run would refuse anyway.
    """
    from gpucourse.course.parameters import resolve
    from gpucourse.runs.resolve import find_deployed_lab
    from gpucourse.ui.views.answers import prediction as view

    module, exercise = session.context.catalog.exercise(run_request.exercise)
    question = exercise.predict
    if question is None or run_request.script is not None or not (can_answer(session) and session.console.out.terminal):
        return None
    try:
        lab = find_deployed_lab(session.context.paths, module, target=run_request.target, gpu=run_request.gpu)
    except MissingError:  # the run reports it
        return None
    parameters = resolve(exercise, run_request.settings, local=lab.is_simulated)
    session.console.show(view(question, run_request.nodes or exercise.launch.nodes, parameters))
    line = ask_valid(session, f"{question.unit or 'prediction'}> ", partial(check_prediction, question))
    return GivenPrediction(id=question.id, answer=line) if line else None
