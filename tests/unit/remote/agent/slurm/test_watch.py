"""Watching jobs: what is reported, what is believed, and when a run has ended. Slurm's answers are scripted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import commands, submit, watch
from tests.unit.remote.scripted import (
    DOWN,
    FORGOTTEN,
    NO_ACCOUNTS,
    Answer,
    Scripted,
    details,
    log,
    row,
    spec,
    write_end_note,
)


def test_look_follows_a_job_to_its_end(script_slurm: Callable[..., Scripted]) -> None:
    answers = [
        row("7", "PENDING"),
        row("7", "PENDING", "Resources"),
        row("7", "RUNNING", "None", "node1"),
        row("7", "COMPLETED", node="node1"),
    ]
    cluster = script_slurm(sbatch="7\n", squeue=answers, scontrol=details("7", "COMPLETED"))
    submit.submit(spec())
    states = [watch.look(Job("r1"))[0]["state"] for _ in range(4)]
    assert states == ["PENDING", "PENDING", "RUNNING", "COMPLETED"]
    exit_record = Job("r1").read("exit.json")
    assert (exit_record["code"], exit_record["reason"]) == (0, "exited")
    assert exit_record["ranks"] == [{"rank": 0, "code": 0, "node": "node1", "at": pytest.approx(0, abs=1e12)}]
    first = exit_record["jobs"][0]
    assert (first["waited_s"], first["ran_s"], first["code"]) == (2.0, 10.0, 0)
    lines = [line.partition(" ")[2] for line in log().splitlines()]
    assert lines == [
        "sbatch --parsable job.sbatch -> job 7",
        "job 7 is PENDING (Resources): it is next in line, but not enough nodes or GPUs are free",
        "        Slurm expects it to start at 2020-11-21 05:49:36 by the cluster's clock",
        "job 7 is RUNNING on node1",
        "job 7 is COMPLETED on node1",
    ]
    assert cluster.count("squeue") == 5  # one question a look, and one for what its jobs submitted
    watch.look(Job("r1"))
    assert cluster.count("squeue") == 5  # and none after the end


@pytest.mark.parametrize(
    ("state", "code", "reason", "shell"),
    [
        ("FAILED", "3:0", "exited", 3), ("FAILED", "0:9", "exited", 137), ("TIMEOUT", "0:0", "timed_out", 124),
        ("CANCELLED", "0:15", "cancelled", 143), ("NODE_FAIL", "1:0", "lost", 137), ("OUT_OF_MEMORY", "0:125", "exited", 253),
        ("BOOT_FAIL", "0:0", "lost", 137), ("DEADLINE", "0:0", "timed_out", 124),
    ],
)  # fmt: skip
def test_look_writes_how_a_job_ended(
    script_slurm: Callable[..., Scripted], state: str, code: str, reason: str, shell: int
) -> None:
    script_slurm(sbatch="7\n", squeue=row("7", state, node="node1"), scontrol=details("7", state, code))
    submit.submit(spec())
    watch.look(Job("r1"))
    exit_record = Job("r1").read("exit.json")
    assert (exit_record["reason"], exit_record["code"]) == (reason, shell)


@pytest.mark.parametrize(
    ("note", "accounts", "state", "code"),
    [
        (0, NO_ACCOUNTS, "COMPLETED", 0), (5, NO_ACCOUNTS, "FAILED", 5), (143, NO_ACCOUNTS, "FAILED", 143),
        (None, NO_ACCOUNTS, "FORGOTTEN", 137),
        (None, "7|TIMEOUT|0:0|2020-11-21T05:49:34|2020-11-21T05:49:36|2020-11-21T05:50:36|node1\n", "TIMEOUT", 124),
    ],
)  # fmt: skip
def test_look_finds_the_end_of_a_job_that_slurm_has_forgotten(
    script_slurm: Callable[..., Scripted], note: int | None, accounts: Answer, state: str, code: int
) -> None:
    script_slurm(sbatch="7\n", squeue=[FORGOTTEN, ""], sacct=accounts, scontrol=FORGOTTEN)
    submit.submit(spec())
    if note is not None:
        write_end_note("7", note)
    assert watch.look(Job("r1"))[0]["state"] == state
    assert Job("r1").read("exit.json")["code"] == code
    assert ("the job is lost and must be run again" in log()) == (state == "FORGOTTEN")
    assert ("a signal ended it (its time limit, scancel or preemption;" in log()) == (note == 143)


def test_look_has_a_row_for_each_task_of_an_array(script_slurm: Callable[..., Scripted]) -> None:
    files = [
        {"name": "array", "text": "#!/bin/bash\n", "copies": 1, "tasks": 3, "after": "", "job_name": "2.4"},
        {"name": "gather", "text": "#!/bin/bash\n", "copies": 1, "tasks": 0, "after": "array", "job_name": "2.4-gather"},
    ]
    answer = (
        row("20_0", "COMPLETED", node="a")
        + row("20_1", "FAILED", node="b")
        + row("20_2", "COMPLETED", node="a")
        + row("21", "CANCELLED")
    )
    cluster = script_slurm(
        sbatch=["20\n", "21\n"],
        squeue=answer,
        scontrol=[details("20", "FAILED", "4:0").replace("JobId=20", "JobId=22 ArrayJobId=20 ArrayTaskId=1"), ""],
    )
    submit.submit(spec(files=files))
    rows = watch.look(Job("r1"))
    assert [(job_row["job"], job_row["file"], job_row["state"]) for job_row in rows] == [
        ("20_0", "array", "COMPLETED"), ("20_1", "array", "FAILED"), ("20_2", "array", "COMPLETED"),
        ("21", "gather", "CANCELLED"),
    ]  # fmt: skip
    assert ("sbatch", "--parsable", "--dependency=afterok:20", "--kill-on-invalid-dep=yes", "gather.sbatch") in cluster.asked
    exit_record = Job("r1").read("exit.json")
    assert (exit_record["reason"], exit_record["code"]) == ("exited", 4)


def test_cancel_returns_when_every_job_has_ended(script_slurm: Callable[..., Scripted]) -> None:
    answers = [
        row("7", "RUNNING", node="a"),
        row("7", "COMPLETING", node="a"),
        row("7", "COMPLETING", node="a"),
        row("7", "CANCELLED", node="a"),
    ]
    cluster = script_slurm(sbatch="7\n", squeue=answers, scancel="", scontrol="")
    submit.submit(spec())
    assert watch.cancel(Job("r1"), watch.request_end(Job("r1"))) == "ended"
    assert Job("r1").read("exit.json")["reason"] == "cancelled"
    assert cluster.count("squeue") == 5  # the last for what its jobs submitted


def test_cancel_raises_when_the_controller_is_down(script_slurm: Callable[..., Scripted]) -> None:
    cluster = script_slurm(sbatch="7\n", squeue=[row("7", "RUNNING", node="a"), DOWN], scancel="")
    submit.submit(spec())
    watch.look(Job("r1"))
    with pytest.raises(commands.Controller, match="Unable to contact slurm controller"):
        watch.cancel(Job("r1"), watch.request_end(Job("r1")))
    assert cluster.count("scancel") == 0
    assert watch.state(Job("r1")) == "running"


def test_cancel_raises_when_a_job_does_not_end(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(sbatch="7\n", squeue=row("7", "COMPLETING", node="a"), scancel="")
    submit.submit(spec())
    with pytest.raises(commands.Controller, match="7 is COMPLETING"):
        watch.cancel(Job("r1"), watch.request_end(Job("r1")), proof_s=0.2)


def test_describe_state_counts_the_jobs_before_one_that_waits(
    script_slurm: Callable[..., Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_asked", {})
    waiting = row("7_1", "PENDING", "Priority")
    script_slurm(sbatch="7\n", squeue=[waiting, "3|900\n4|200\n7_[1-2]|500\n"])
    file = {"name": "job", "text": "#!/bin/bash\n", "copies": 1, "tasks": 1, "numbers": [1], "after": "", "job_name": "2.1"}
    submit.submit(spec(files=[file], is_shared=True, partition="gpu"))
    [described] = watch.describe_state(Job("r1"))["jobs"]
    assert (described["job"], described["ahead"]) == ("7_1", 1)
