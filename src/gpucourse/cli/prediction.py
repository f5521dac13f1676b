"""Read the prediction before a run, from the option --predict or from an answer at the terminal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpucourse.cli.asking import ask_valid, can_answer
from gpucourse.cli.session import Session
from gpucourse.errors import MissingError, UnknownName, UsageError
from gpucourse.model.record import GivenPrediction

if TYPE_CHECKING:
    from gpucourse.model.deployment import Deployment
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


def ask_red_check(session: Session, run_request: RunRequest) -> str:
    """Ask the person at the terminal which check will fail, and return its name. On a simulated lab, the checks that need a GPU
    are left out.

    Raises UsageError with the names if there is no terminal, or if the person chooses none, and the errors of `_find_lab`.
    """
    from gpucourse.ui.views.answers import red_checks

    _, exercise = session.context.catalog.exercise(run_request.exercise)
    lab_and_nodes = _find_lab(session, run_request)
    is_simulated = lab_and_nodes is not None and lab_and_nodes[0].is_simulated
    listed_checks = [check for check in exercise.checks if not (is_simulated and check.evidence == "gpu")]
    checks = [check.id for check in listed_checks]

    def find_check(text: str) -> str:
        if text.isdecimal() and 0 < int(text) <= len(checks):
            return checks[int(text) - 1]
        if text not in checks:
            raise ValueError(f"{text!r} is not the number or the name of a check")
        return text

    session.console.show(red_checks(listed_checks))
    line = ask_valid(session, "check> ", find_check) if can_answer(session) else None
    if not line:
        raise UsageError("--expect-red needs the check that will fail", hint=" ".join([exercise.mutation_command, *checks[:1]]))
    return find_check(line)


def ask_prediction(session: Session, run_request: RunRequest) -> GivenPrediction | None:
    """Ask the person at the terminal what the run will measure. Return None if the exercise has no prediction, if there is no
    terminal, or if the person presses Enter.

    Raises UsageError or UnknownName for parameters that the run would refuse anyway, and the errors of `_find_lab`.
    """
    from gpucourse.course.parameters import resolve
    from gpucourse.ui.views.answers import prediction as view

    _, exercise = session.context.catalog.exercise(run_request.exercise)
    question = exercise.predict
    if question is None or run_request.script is not None or not (can_answer(session) and session.console.out.terminal):
        return None
    if (lab_and_nodes := _find_lab(session, run_request)) is None:
        return None
    lab, node_count = lab_and_nodes
    parameters = resolve(exercise, run_request.settings, local=lab.is_simulated)
    session.console.show(view(question, node_count, parameters))
    line = ask_valid(
        session, f"{'letter' if question.choices else question.unit or 'prediction'}> ", partial(check_prediction, question)
    )
    return GivenPrediction(id=question.id, answer=line) if line else None


def _find_lab(session: Session, run_request: RunRequest) -> tuple[Deployment, int] | None:
    """Return the lab of a run and the run's number of nodes. Return None if there is no lab; the run itself then reports this.
    Raises UsageError if the run would refuse this number of nodes.
    """
    from gpucourse.launch.launcher import find_launcher
    from gpucourse.launch.planning import check_count, choose_nodes
    from gpucourse.runs.resolve import find_deployed_lab

    module, exercise = session.context.catalog.exercise(run_request.exercise)
    try:
        lab = find_deployed_lab(session.context.paths, module, target=run_request.target, gpu=run_request.gpu)
    except MissingError:
        return None
    if lab.inventory is None or lab.runs_as_jobs or find_launcher(run_request.launcher or exercise.launch.kind).by_slurm:
        node_count = run_request.nodes or exercise.launch.nodes
        check_count(exercise, node_count)
        return lab, node_count
    return lab, len(choose_nodes(exercise, lab.inventory, run_request.nodes, module.id))
