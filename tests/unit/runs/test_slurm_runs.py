"""What jobs wrote joins their rows in the metrics of a run under Slurm."""

from __future__ import annotations

import json
from pathlib import Path

from gpucourse.model.record import RunRecord
from gpucourse.model.slurm import JobRow, SlurmRun
from gpucourse.runs import slurm_runs
from gpucourse.workspace.paths import RunPaths


def record(*rows: JobRow, own: str | None = None) -> RunRecord:
    return RunRecord(
        id="r", exercise="2.1", module="2", stack="02-local", mode="local", launcher="slurm", state="succeeded", created="now",
        nodes=["node0"], own_script=own, slurm=SlurmRun(partition="gpu", nodes=1, gpus=1, jobs=list(rows)),
    )  # fmt: skip


def test_values_of_a_job_join_its_row(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    folder = files.node_outputs("node0")
    folder.mkdir(parents=True)
    (folder / "job-7.json").write_text(json.dumps({"gpus_given": 1, "state": "a lie"}))
    (folder / "queue.json").write_text(json.dumps({"queue": [{"job": "8", "state": "PENDING", "reason": "Resources"}]}))
    rows = (
        JobRow(row=0, job="7", file="job", state="COMPLETED", node="node1", code=0),
        JobRow(row=1, job="8", file="job", state="CANCELLED", asked=True),
    )
    values = (slurm_runs.add_metrics({"mine": 1}, record(*rows), files) or {})["slurm"]
    assert (values["jobs"][0]["gpus_given"], values["jobs"][0]["state"]) == (1, "COMPLETED")  # Slurm's word counts
    assert [job["job"] for job in values["started_jobs"]] == ["7"]
    assert (values["waiting"], values["waiting_with_reason"], values["cancelled_on_purpose"]) == (1, 1, 1)


def test_metrics_count_jobs_at_once_and_output_files(tmp_path: Path) -> None:
    files = RunPaths(tmp_path)
    files.logs.mkdir()
    for name in ("node1-rank0.log", "node2-rank1.log", "node0-launcher.log"):
        (files.logs / name).touch()
    spans = [("10", "20"), ("12", "14"), ("14", "16"), ("15", "15"), ("20", "30")]
    rows = [
        JobRow(row=place, job=str(place), file="my_array", state="COMPLETED", node="node[1-2]", started=begun, ended=ended)
        for place, (begun, ended) in enumerate(spans)
    ]
    other = JobRow(row=9, job="9", file="gather", state="COMPLETED", node="node1", started="12", ended="13")
    values = (slurm_runs.add_metrics(None, record(*rows, other), files) or {})["slurm"]
    assert (values["most_at_once"], values["output_files"]) == (2, 2)
    assert values["started_jobs"][0]["nodes"] == 2
    short = JobRow(row=0, job="1", file="job", state="COMPLETED", node="node1", started="10", ended="10")
    assert (slurm_runs.add_metrics(None, record(short), files) or {})["slurm"]["most_at_once"] == 1
