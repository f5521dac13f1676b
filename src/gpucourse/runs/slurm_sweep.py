"""The runs of a parameter sweep as one job array of a Slurm cluster. Each run is a task, with its own record and folder.

The cluster gets one submission and one place in the queue for all of them, and runs them side by side if it can.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Self

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.launch.sbatch import render_array
from gpucourse.model.event import Note, ignore_event
from gpucourse.model.plan import Batch, LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.runs import run as single
from gpucourse.runs.prepare import PlannedRun, plan_run
from gpucourse.runs.resolve import ResolvedRun, RunRequest, resolve
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock

if TYPE_CHECKING:
    from gpucourse.remote.fleet import Fleet


@dataclass
class ArrayOfRuns:
    """The runs of a sweep that are submitted together, if the lab is a Slurm cluster that other people share.

    A `with` block keeps the connection to the cluster and the locks of the runs.

    `requests`: one for each value, in the order of the tasks.
    `keep_runs`: called with the ids of the runs as soon as they are submitted.
    """

    requests: Sequence[RunRequest]
    keep_runs: Callable[[Sequence[str]], None]
    _stack: ExitStack = field(default_factory=ExitStack)
    _records: list[RunRecord] = field(default_factory=list)
    _fleet: Fleet | None = None
    _is_tried: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def run_ids(self) -> list[str]:
        """Return the ids of the runs that were submitted together. There are none if each value is run separately."""
        return [record.id for record in self._records]

    def submit(self, context: Context) -> bool:
        """Submit all runs on the first call. Return whether they are one job array.

        Return False if the lab is not on a cluster that other people share, if the runs need different resources, or if the
        cluster refuses the array. Raises UsageError if the runs together may need too many GPU hours, and the other errors of
        `plan_run`.
        """
        if not self._is_tried:
            self._is_tried = True
            first = resolve(context, self.requests[0])
            if first.is_scheduled and first.require_deployment().runs_as_jobs:
                self._submit_all(context, [first, *(resolve(context, request) for request in self.requests[1:])])
        return bool(self._records)

    def follow(self, context: Context, number: int) -> single.RunResult:
        """Follow one of the submitted runs until it ends, and return its result. `number` counts from 1. Raises the errors of
        `follow.follow_to_end`."""
        from gpucourse.runs import follow

        if self._fleet is None:
            raise AssertionError(number)
        record = self._records[number - 1]
        return single.RunResult(record=record, followed_run=follow.follow_to_end(context, self._fleet, record))

    def _submit_all(self, context: Context, tasks: Sequence[ResolvedRun]) -> None:
        with ExitStack() as stack:
            planned = stack.enter_context(plan_run(context, tasks[0], other_tasks=tasks[1:]))
            text = _join(planned.plans) if len(planned.plans) == len(tasks) else ""
            if not text:
                context.watch(
                    Note(text="each run is a separate job: the runs need different resources, or one of them cannot run")
                )
                return
            records: list[RunRecord] = []
            try:
                self._record_and_submit(context, stack, planned, tasks, text, records)
            except MissingError as error:
                context.watch(Note(text=f"each run is a separate job, not a task of one array: {error.what}", level="warning"))
                _forget(context, planned.fleet, records)
                return
            self._records, self._fleet = records, planned.fleet
            context.watch(Note(text=f"the {len(records)} runs of the sweep are one job array"))
            self._stack = stack.pop_all()
        self.keep_runs(self.run_ids)

    def _record_and_submit(
        self,
        context: Context,
        stack: ExitStack,
        planned: PlannedRun,
        tasks: Sequence[ResolvedRun],
        text: str,
        records: list[RunRecord],
    ) -> None:
        """Create all records, then copy the files of all runs. The first run comes last, because it submits the array."""
        plans: list[LaunchPlan] = []
        for task, plan in zip(tasks, planned.plans, strict=True):
            run_id = runs.new_run(context.paths, task.request.place)
            stack.enter_context(hold_lock(runs.lock_of(context.paths, run_id), f"run {task.exercise.id}"))
            plans.append(replace(plan, run_id=run_id))
            records.append(single.new_record(context, task, planned.deployment, plans[-1]))
            records[-1].phases_s = dict(planned.phases_s)
        array = {"runs": [record.id for record in records], "text": text}
        silent = context.watched_by(ignore_event)  # one note is enough for all of them
        for record, plan in reversed(list(zip(records, plans, strict=True))):
            try:
                single.submit(silent, planned.fleet, record, plan, array=array)
            except GpucourseError:
                from gpucourse.runs import follow

                for other in records:
                    if not other.has_ended:
                        follow.give_up(context.paths, planned.fleet, other, "failed", "the job array was not submitted")
                raise


def _join(plans: Sequence[LaunchPlan]) -> str:
    """Return the text of the job array of these plans, or an empty string if they cannot be one array."""
    batches = [plan.batch for plan in plans if plan.batch is not None]
    if len(batches) < len(plans) or not all(map(_is_one_task, batches)):
        return ""
    files = [batch.files[0] for batch in batches]
    if any(file.flags != files[0].flags for file in files):
        return ""
    return render_array([file.text for file in files])


def _is_one_task(batch: Batch) -> bool:
    """Return whether a run is one job that submits a file of the course, so that it can be a task of an array."""
    files = batch.files
    is_single = len(files) == 1 and files[0].copies == 1 and len(files[0].numbers) == 1
    return is_single and not (batch.own or batch.session or batch.setup)


def _forget(context: Context, fleet: Fleet, records: Sequence[RunRecord]) -> None:
    """Remove runs that were not submitted. Their folders on the cluster are removed before their records, because `destroy`
    finds the folders by the records."""
    from gpucourse.remote.slurm_client import remove_runs

    remove_runs(fleet.link(fleet.nodes[0]), [record.id for record in records])
    for record in records:
        shutil.rmtree(runs.files_of(context.paths, record).folder, ignore_errors=True)
