"""The hours of runs on clusters, and the limit that refuses a run before it is submitted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpucourse.errors import UsageError
from gpucourse.model.record import RunRecord, RunState
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.runs import slurm_hours
from gpucourse.runs.resolve import RunRequest
from gpucourse.workspace import runs
from gpucourse.workspace.paths import WorkspacePaths
from tests.unit.launch.test_slurm import make_plan, request

NOW = "2026-01-01T00:00:00+00:00"


def save(
    paths: WorkspacePaths, run_id: str, state: RunState, *, hours: float | None, mode: str = "slurm", submitted: bool = True
) -> None:
    jobs = [JobRow(row=0, job="7", file="job", state="COMPLETED", cpu_hours=hours, gpu_hours=hours)] if submitted else []
    record = RunRecord(
        id=run_id, exercise="3.2", module="3", stack=f"03-{mode}", mode=mode, launcher="torchrun", state=state, created=NOW,
        nodes=["login"], slurm=SlurmRun(partition="gpu", nodes=1, gpus=1, max_gpu_hours=2.0, jobs=jobs),
    )  # fmt: skip
    paths.run("3.2", run_id).folder.mkdir(parents=True)
    runs.save(paths, record)


def test_check_hours_counts_the_maximum_of_runs_whose_hours_are_not_known(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    save(paths, "20260101-000000-otter", "succeeded", hours=0.5)
    save(paths, "20260101-000001-otter", "running", hours=None)
    save(paths, "20260101-000002-otter", "failed", hours=None)
    save(paths, "20260101-000003-otter", "succeeded", hours=9.0, mode="local")
    save(paths, "20260101-000004-otter", "failed", hours=None, submitted=False)
    [lab] = slurm_hours.list_hours(paths)
    assert (lab.stack, lab.runs, lab.gpu_hours, lab.reserved_gpu_hours, lab.unknown) == ("03-slurm", 4, 0.5, 4.0, 1)
    plan = make_plan(request({"kind": "slurm", "slurm": {"jobs": "jobs"}}, jobs=3), nodes=2, mode="slurm")
    assert slurm_hours.count_max_gpu_hours(plan) == pytest.approx(1.0), "ten minutes of three jobs on two nodes"
    context: Any = SimpleNamespace(paths=paths, settings=SimpleNamespace(max_gpu_hours=5.6))
    run: Any = SimpleNamespace(request=RunRequest(exercise="2.9"))
    slurm_hours.check_hours(context, run, plan)
    run.request = replace(run.request, max_gpu_hours=5.4)
    with pytest.raises(UsageError, match=r"may need 1\.00 GPU hours, 4\.50 are used or reserved, and the limit is 5\.4"):
        slurm_hours.check_hours(context, run, plan)
    assert plan.batch is not None
    own_plan = replace(plan, batch=replace(plan.batch, own=True))
    with pytest.raises(UsageError, match="has no time limit"):
        slurm_hours.check_hours(context, run, own_plan)
