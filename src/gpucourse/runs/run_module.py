"""`run MODULE --all`: run every exercise of a module on each of its labs that is up, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted
from gpucourse.model.deployment import Deployment
from gpucourse.model.manifest import Exercise, Module
from gpucourse.runs.resolve import RunRequest, find_deployed_lab, resolve
from gpucourse.runs.run import RunResult, run
from gpucourse.workspace import deployments
from gpucourse.workspace.paths import WorkspacePaths

RunExercise = Callable[[Exercise, Deployment, Callable[[Context], RunResult]], RunResult]


@dataclass(frozen=True, kw_only=True)
class ExerciseRun:
    """One exercise on one lab. Exercises that open a session in the learner's own terminal are skipped.

    `run`: the id of its run.
    `error`: why there was no run, or why it failed.
    """

    exercise: str
    title: str
    lab: str
    gpu: str
    mode: str
    state: str
    verdict: str | None = None
    run: str | None = None
    seconds: float | None = None
    error: str = ""

    @property
    def good(self) -> bool:
        """Return whether the exercise was skipped, or completed without a failed check."""
        return self.state == "skipped" or (self.state == "succeeded" and self.verdict not in {"failed", "error"})


def labs(paths: WorkspacePaths, module: Module, run_request: RunRequest) -> list[Deployment]:
    """Return every lab of a module that is up, sorted by name. If the request names a target or a GPU, only such labs are
    returned.

    Raises MissingError with the command that deploys a lab, if there is none.
    """
    up = [
        deployment
        for deployment in deployments.list_of_module(paths, module.id)
        if deployment.up and run_request.target in {None, deployment.target} and run_request.gpu in {None, deployment.gpu}
    ]
    return sorted(up, key=lambda deployment: deployment.stack) or [
        find_deployed_lab(paths, module, target=run_request.target, gpu=run_request.gpu)
    ]


def run_all(paths: WorkspacePaths, module: Module, run_request: RunRequest, run_one: RunExercise) -> Sequence[ExerciseRun]:
    """Run every exercise of the module on every lab that is up, and return the runs.

    If one fails, the failure is recorded, and the next one runs.

    `run_one` is called with the exercise, the lab and the function that runs the exercise. Raises MissingError if no lab is
    up, and Interrupted when the user presses Ctrl-C.
    """
    steps: list[ExerciseRun] = []
    for lab in labs(paths, module, run_request):
        for exercise in module.exercises:
            request = replace(run_request, exercise=exercise.id, target=lab.target, gpu=lab.gpu or None)
            steps.append(_step(exercise, lab, request, run_one))
    return steps


def _step(exercise: Exercise, lab: Deployment, run_request: RunRequest, run_one: RunExercise) -> ExerciseRun:
    initial_step = ExerciseRun(
        exercise=exercise.id, title=exercise.title, lab=lab.stack, gpu=lab.gpu, mode=lab.mode, state="not run"
    )
    if exercise.launch.traits.is_terminal:
        return replace(
            initial_step, state="skipped", error=f"it opens a session in your own terminal: gpucourse run {exercise.id}"
        )
    try:
        ran = run_one(exercise, lab, lambda watched: run(watched, resolve(watched, run_request)))
    except Interrupted:
        raise
    except GpucourseError as error:
        return replace(initial_step, error=error.what)
    record = ran.followed_run.record if ran.followed_run else ran.record
    seconds = max((end.seconds or 0.0 for end in record.node_exits), default=None)
    finished_step = replace(initial_step, state=record.state, verdict=record.verdict, run=record.id, seconds=seconds)
    return replace(finished_step, error=record.error or "")
