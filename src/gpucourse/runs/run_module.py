"""`run MODULE --all`: every exercise of a module on every lab of it that is up, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted
from gpucourse.model.deployment import Deployment
from gpucourse.model.manifest import Exercise, Module
from gpucourse.runs.prepare import Order, deployed
from gpucourse.runs.run import Ran, run
from gpucourse.workspace import deployments


@dataclass(frozen=True, kw_only=True)
class Step:
    """One exercise on one lab. `run` is its record's id; `error` says why there is none. A session at the learner's own
    terminal is skipped."""

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
        """Whether it ran to its end and no check failed, or was skipped."""
        return self.state == "skipped" or (self.state == "succeeded" and self.verdict not in {"failed", "error"})


def labs(context: Context, module: Module, order: Order) -> list[Deployment]:
    """Every lab of a module that is up, by name; those of one target or GPU where the order names it.

    Raises MissingError, with the command that brings one, where there is none.
    """
    up = [
        found
        for found in deployments.of_module(context.paths, module.id)
        if found.up and order.target in {None, found.target} and order.gpu in {None, found.gpu}
    ]
    return sorted(up, key=lambda found: found.stack) or [deployed(context, module, target=order.target, gpu=order.gpu)]


def run_all(
    context: Context, module: Module, order: Order, each: Callable[[Exercise, Deployment, Callable[[], Ran]], Ran]
) -> Sequence[Step]:
    """Run every exercise of the module on every lab that is up. `each` is called with the exercise, the lab and what to do.

    What fails is recorded, and the next one goes on. Raises MissingError where no lab is up, Interrupted when the person let
    go.
    """
    steps: list[Step] = []
    for lab in labs(context, module, order):
        for exercise in module.exercises:
            wanted = replace(order, exercise=exercise.id, target=lab.target, gpu=lab.gpu or None)
            steps.append(_step(context, exercise, lab, wanted, each))
    return steps


def _step(
    context: Context,
    exercise: Exercise,
    lab: Deployment,
    order: Order,
    each: Callable[[Exercise, Deployment, Callable[[], Ran]], Ran],
) -> Step:
    planned = Step(exercise=exercise.id, title=exercise.title, lab=lab.stack, gpu=lab.gpu, mode=lab.mode, state="not run")
    if exercise.launch.kind == "slurm-pty":
        return replace(planned, state="skipped", error=f"it is a session at your own terminal: gpucourse run {exercise.id}")
    try:
        ran = each(exercise, lab, lambda: run(context, order, detach=False, dry_run=False))
    except Interrupted:
        raise
    except GpucourseError as error:
        return replace(planned, error=error.what)
    record = ran.attended.record if ran.attended else ran.record
    if record is None:  # only a dry run has none
        raise AssertionError(exercise.id)
    seconds = max((end.seconds or 0.0 for end in record.node_exits), default=None)
    done = replace(planned, state=record.state, verdict=record.verdict, run=record.id, seconds=seconds)
    return replace(done, error=record.error or "")
