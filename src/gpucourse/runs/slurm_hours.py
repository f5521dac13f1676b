"""The core hours and GPU hours of runs on Slurm clusters, and the limit on them (`max_gpu_hours`)."""

from __future__ import annotations

from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import UsageError
from gpucourse.model.node import is_simulated
from gpucourse.model.plan import LaunchPlan
from gpucourse.model.record import RunRecord
from gpucourse.runs.resolve import ResolvedRun
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths


@dataclass(frozen=True, kw_only=True)
class ClusterHours:
    """The hours that the runs of one lab have used.

    `runs`: the number of runs.
    `cpu_hours`, `gpu_hours`: the totals of the runs whose hours are known.
    `unknown`: the number of ended runs whose hours are not known.
    `reserved_gpu_hours`: the most that all other runs may have used or may still use within their time limits. These are the
    runs that have not ended, and those whose hours are not known.
    """

    stack: str
    runs: int = 0
    cpu_hours: float = 0.0
    gpu_hours: float = 0.0
    unknown: int = 0
    reserved_gpu_hours: float = 0.0


def list_hours(paths: WorkspacePaths) -> list[ClusterHours]:
    """Return the hours of each lab with runs on a Slurm cluster. Simulated nodes are left out."""
    by_stack: dict[str, list[RunRecord]] = {}
    for record in runs.readable(paths)[0]:
        if record.slurm is not None and not is_simulated(record.mode):
            by_stack.setdefault(record.stack, []).append(record)
    return [_sum_up(stack, records) for stack, records in sorted(by_stack.items())]


def _sum_up(stack: str, records: list[RunRecord]) -> ClusterHours:
    slurm_runs = [record.slurm for record in records if record.slurm is not None and record.has_ended]
    ended = [run for run in slurm_runs if run.jobs]  # without a job, nothing was submitted
    hours = [(run.count_hours("cpu_hours") or 0.0, gpu) for run in ended if (gpu := run.count_hours("gpu_hours")) is not None]
    unknown = [run for run in ended if run.count_hours("gpu_hours") is None]
    active = [record.slurm for record in records if record.slurm is not None and not record.has_ended]
    reserved = sum(run.max_gpu_hours for run in (*active, *unknown))
    return ClusterHours(
        stack=stack,
        runs=len(records),
        cpu_hours=round(sum(cpu for cpu, _ in hours), 4),
        gpu_hours=round(sum(gpu for _, gpu in hours), 4),
        unknown=len(unknown),
        reserved_gpu_hours=round(reserved, 4),
    )


def count_max_gpu_hours(plan: LaunchPlan) -> float | None:
    """Return the GPU hours of a run whose jobs all reach their time limit, or None if a job has no limit of its own."""
    batch = plan.batch
    if batch is None or not batch.gpus:
        return 0.0
    seconds = batch.max_s if batch.own else plan.timeout_s
    rows = max(1, batch.files[0].rows)
    return None if seconds is None else seconds / 3600 * batch.nodes * batch.gpus * rows


def check_hours(context: Context, run: ResolvedRun, plan: LaunchPlan, *, runs_alike: int = 1) -> None:
    """Refuse a run that could bring the GPU hours above the limit, which was typed for this run or comes from the settings.
    The limit applies to all runs of the workspace on Slurm clusters. Raises UsageError before anything is submitted.

    `runs_alike`: how many runs with the same needs are submitted together.
    """
    limit = run.request.max_gpu_hours if run.request.max_gpu_hours is not None else context.settings.max_gpu_hours
    if limit is None or is_simulated(plan.mode):
        return
    hours = list_hours(context.paths)
    used = sum(lab.gpu_hours + lab.reserved_gpu_hours for lab in hours)
    hours_of_run = count_max_gpu_hours(plan)
    if hours_of_run is None:
        raise UsageError(
            "the batch file has no time limit, so its GPU hours have no limit either",
            hint="--timeout 10m sets one for this run",
        )
    needed = hours_of_run * runs_alike
    if used + needed > limit:
        subject = "this run" if runs_alike == 1 else f"these {runs_alike} runs"
        raise UsageError(
            f"{subject} may need {needed:.2f} GPU hours, {used:.2f} are used or reserved, and the limit is {limit:g}",
            hint="a shorter --timeout or fewer nodes need less; gpucourse cost shows the hours; the limit: --max-gpu-hours, or "
            "max_gpu_hours in gpucourse.yaml",
        )
