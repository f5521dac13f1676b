"""Submitting a run to Slurm exactly once, with its variables, folders and secrets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpucourse.remote.agent import scratch
from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, jobs, submit, watch
from tests.unit.remote.scripted import Scripted, row, spec


def test_submit_keeps_the_queue_and_cancels_the_last_job(script_slurm: Callable[..., Scripted]) -> None:
    file = {"name": "job", "text": "#!/bin/bash\n", "copies": 3, "tasks": 0, "after": "", "job_name": "2.1"}
    first_queue = row("1", "RUNNING", node="a") + row("2", "PENDING") + row("3", "PENDING")
    behind = row("1", "RUNNING", node="a") + row("2", "PENDING", "Priority") + row("3", "PENDING", "Priority")
    third_queue = row("1", "RUNNING", node="a") + row("2", "PENDING", "Resources") + row("3", "PENDING", "Priority")
    last = row("1", "COMPLETED", node="a") + row("2", "COMPLETED", node="a") + row("3", "CANCELLED")
    cluster = script_slurm(
        sbatch=["1\n", "2\n", "3\n"],
        squeue=[first_queue, behind, third_queue, "JOBID\n2 PD (Resources)\n", last],
        scancel="",
        scontrol="",
    )
    submit.submit(spec(files=[file], show_queue=True, cancel_last=True))
    assert Path(Job("r1").path("outputs", "squeue.txt")).read_text().endswith("2 PD (Resources)\n")
    queue = json.loads(Path(Job("r1").path("outputs", "queue.json")).read_text())["queue"]
    assert [entry["reason"] for entry in queue] == ["", "Resources", "Priority"]
    assert ("scancel", "3") in cluster.asked
    rows = watch.look(Job("r1"))
    assert [entry["asked"] for entry in rows] == [False, False, True]
    assert Job("r1").read("exit.json")["code"] == 0  # what the exercise itself cancelled is no failure


def test_submit_repeated_submits_nothing_twice(script_slurm: Callable[..., Scripted]) -> None:
    cluster = script_slurm(sbatch="7\n", squeue="")
    submit.submit(spec())
    assert submit.submit(spec()) == {"state": "running", "again": True}
    assert [entry["id"] for entry in jobs.list_submitted_jobs(Job("r1"))] == ["7"]
    assert cluster.count("sbatch") == 1


def test_submit_goes_on_after_a_kill(script_slurm: Callable[..., Scripted]) -> None:
    file = {"name": "job", "text": "#!/bin/bash\n", "copies": 3, "tasks": 0, "after": "", "job_name": "2.1"}
    script_slurm(sbatch=["1\n", RuntimeError("killed here")], squeue="")
    with pytest.raises(RuntimeError):
        submit.submit(spec(files=[file]))
    folder = Job("r1").folder
    queue = f"1|COMPLETED|2.1|{folder}\n2|PENDING|2.1|{folder}\n9|PENDING|2.1|/somewhere/else\n"
    cluster = script_slurm(sbatch="3\n", squeue=queue)
    submit.submit(spec(files=[file]))
    assert [entry["id"] for entry in jobs.list_submitted_jobs(Job("r1"))] == ["1", "2", "3"]
    assert cluster.count("sbatch") == 1


def test_submit_that_was_killed_leaves_jobs_that_request_end_finds(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(sbatch=RuntimeError("killed here"), squeue="")
    with pytest.raises(RuntimeError):
        submit.submit(spec())
    job = Job("r1")
    queue = f"5|PENDING|2.1|{job.folder}\n"
    cluster = script_slurm(
        squeue=[queue, row("5", "RUNNING", node="a"), row("5", "CANCELLED", node="a")], scancel="", scontrol=""
    )
    assert watch.cancel(job, watch.request_end(job)) == "ended"
    assert ("scancel", "5") in cluster.asked


def test_submit_gives_variables_to_sbatch_and_secrets_to_no_file(script_slurm: Callable[..., Scripted]) -> None:
    slurm = script_slurm(sbatch="7\n", squeue=row("7", "COMPLETED"))
    submit.submit({**spec(), "env": {"MINE": "1"}, "secrets": {"TOKEN": "3f9c"}})
    assert slurm.variables["sbatch"].items() >= {"MINE": "1", "TOKEN": "3f9c"}.items()
    files = [path for path in Path(Job("r1").folder).rglob("*") if path.is_file()]
    assert {"job.json", "slurm.json"} <= {path.name for path in files}
    assert not [path for path in files if b"3f9c" in path.read_bytes()]


@pytest.mark.parametrize(
    ("login", "export"), [("", None), ("ALL", None), ("A,ALL", None), ("NONE", "MINE,TOKEN"), ("NIL", "MINE,TOKEN"),
     ("A", "A,MINE,TOKEN")],
)  # fmt: skip
def test_submit_exports_its_variables_when_the_login_exports_none(
    monkeypatch: pytest.MonkeyPatch, script_slurm: Callable[..., Scripted], login: str, export: str | None
) -> None:
    if login:
        monkeypatch.setenv("SBATCH_EXPORT", login)
    slurm = script_slurm(sbatch="7\n", squeue=row("7", "COMPLETED"))
    submit.submit({**spec(), "env": {"MINE": "1"}, "secrets": {"TOKEN": "3f9c"}})
    words = slurm.variables["sbatch"].get("SBATCH_EXPORT")
    assert (words is None) == (export is None)
    assert {*(words or "").split(",")} >= {*(export or "").split(",")}


@pytest.mark.parametrize(("state", "short"), [("", True), ("there\n", False)])
def test_submit_shortens_a_long_path_only_when_all_nodes_are_here(
    script_slurm: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, short: bool
) -> None:
    """Submit with a long path. Links on this machine do not exist on others, so their jobs use the cluster's own folder."""
    monkeypatch.setenv("HOME", str(tmp_path / ("deep" * 20)))
    cluster = script_slurm(sbatch="7\n", sinfo=f"{commands.host()}\n{state}")
    submit.submit(spec())
    assert cluster.variables["sbatch"].get("TMPDIR") == (scratch.link_of(Job("r1")) if short else None)
    scratch.remove(Job("r1"))


@pytest.mark.parametrize(
    ("words", "partition"),
    [
        (["--partition=gpu", "--wrap", "python a.py"], "cpu"),
        (["--partition=gpu", "--gres=gpu:1", "--wrap=python a.py"], "short"),
        (["--gpus-per-node=1", "--partition=gpu", "--wrap=python a.py"], "short"),
        (["--partition=gpu", "next.sbatch"], "short"),
        (["--partition=long", "--wrap=python a.py"], "long"),
    ],
)
def test_submit_writes_an_sbatch_that_replaces_a_partition_that_the_cluster_lacks(
    script_slurm: Callable[..., Scripted], tmp_path: Path, words: list[str], partition: str
) -> None:
    script_slurm(sbatch="7\n", squeue=row("7", "RUNNING"))
    submit.submit(spec(absent_partition="gpu", partition="short", cpu_partition="cpu"))
    (tmp_path / "sbatch").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "sbatch").chmod(0o700)
    bin_folder = Job("r1").path("bin")
    result = subprocess.run(
        [f"{bin_folder}/sbatch", *words],
        env={"PATH": f"{bin_folder}:{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout.splitlines() == [f"--partition={partition}" if "partition" in word else word for word in words]


def submit_array(*run_ids: str) -> None:
    """Submit runs as one job array, in the client's order: the first run comes last."""
    for task, run_id in reversed(list(enumerate(run_ids))):
        file = {"name": "job", "text": f"# task {task}\n", "copies": 1, "tasks": 1, "after": "", "job_name": "2.1"}
        request = spec(files=[{**file, "numbers": [task]}], array={"runs": list(run_ids), "text": "# array\n"})
        submit.submit({**request, "run_id": run_id})


def test_submit_of_a_job_array_gives_each_run_its_task(script_slurm: Callable[..., Scripted]) -> None:
    cluster = script_slurm(
        sbatch="7\n", squeue=row("7_0", "RUNNING", node="a") + row("7_1", "PENDING", "Resources"), scancel=""
    )
    submit_array("r1", "r2")
    assert [words[-1] for words in cluster.asked if words[0] == "sbatch"] == ["array.sbatch"]
    assert Path(Job("r1").path("tasks", "1", "job.sbatch")).read_text() == "# task 1\n"
    assert [[entry["job"] for entry in watch.look(Job(run_id))] for run_id in ("r1", "r2")] == [["7_0"], ["7_1"]]
    watch.request_end(Job("r2"))
    assert ("scancel", "7_1") in cluster.asked, "the other runs continue"


def test_submit_of_a_job_array_that_was_killed_is_found_by_every_run(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(sbatch=RuntimeError("killed here"), squeue="")
    with pytest.raises(RuntimeError):
        submit_array("r1", "r2")
    script_slurm(squeue=[f"7|PENDING|2.1|{Job('r1').folder}\n", row("7_0", "PENDING") + row("7_1", "RUNNING", node="a")])
    assert [entry["job"] for entry in watch.describe_state(Job("r2"))["jobs"]] == ["7_1"]
