"""The lines about jobs in a run's log: each change once, in plain words, with the command to type next."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from gpucourse.remote.agent.job import Job
from gpucourse.remote.agent.slurm import submit, watch
from tests.unit.remote.scripted import DOWN, Scripted, details, log, row, spec


def test_note_changes_explains_a_requeued_job(script_slurm: Callable[..., Scripted]) -> None:
    answers = [
        row("7", "RUNNING", node="node3"),
        row("7", "PENDING"),
        row("7", "PENDING", "BeginTime"),
        row("7", "COMPLETED", node="node1"),
    ]
    down = "node3|gpu*|down*|gpu:1|4|up|Not responding\n"
    script_slurm(sbatch="7\n", squeue=answers, scontrol=details("7", "COMPLETED", restarts=1), sinfo=down)
    submit.submit(spec())
    for _ in range(4):
        rows = watch.look(Job("r1"))
    assert "put back into the queue, because its node failed (node3 is down*: Not responding)" in log()
    assert "Output that still appears there is from the first start" in log()
    assert "two minutes" in log()
    assert "gpucourse ssh 2 -- scontrol update JobId=7 StartTime=now" in log()
    assert rows[0]["restarts"] == 1


def test_note_changes_names_the_command_that_releases_a_held_job(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(sbatch="7\n", squeue=row("7", "PENDING", "launch failed requeued held"))
    submit.submit(spec())
    watch.look(Job("r1"))
    assert "gpucourse ssh 2 -- scontrol release 7\n" in log()
    assert "gpucourse deploy 2 repairs it" in log()


def test_note_changes_says_what_a_user_of_a_shared_cluster_can_do(script_slurm: Callable[..., Scripted]) -> None:
    """Note changes of a job that was never seen running, so that only its log shows its node."""
    down = "node3|gpu*|down*|gpu:1|4|up|disk\n"
    script_slurm(sbatch="7\n", squeue=[row("7", "PENDING", "BeginTime"), row("7", "PENDING", "JobHeldAdmin")], sinfo=down)
    submit.submit(spec(is_shared=True))
    job = Job("r1")
    Path(job.path("logs", "7-node3.out")).touch()
    for _ in range(2):
        watch.look(job)
    assert "put back into the queue, because its node failed (node3 is down*: disk)" in log()
    assert "Only the administrator can release it: ask why, or gpucourse cancel r1" in log()
    assert re.search(r"^\d\d:\d\d:\d\d \S+ job 7 was put back", log(), re.MULTILINE), "its times have their zone"


def test_note_silence_names_a_controller_that_is_down_once(script_slurm: Callable[..., Scripted]) -> None:
    script_slurm(
        sbatch="7\n", squeue=[row("7", "RUNNING", node="node1"), DOWN, DOWN, row("7", "COMPLETED", node="node1")], scontrol=""
    )
    submit.submit(spec())
    states = [watch.look(Job("r1"))[0]["state"] for _ in range(4)]
    assert states == ["RUNNING", "RUNNING", "RUNNING", "COMPLETED"]
    assert log().count("Slurm does not answer") == 1
    assert log().count("Slurm answers again") == 1


def test_note_changes_counts_many_tasks_and_names_those_that_failed(script_slurm: Callable[..., Scripted]) -> None:
    numbers = list(range(0, 200, 2))
    files = [
        {"name": "job", "text": "#!/bin/bash\n", "copies": 1, "tasks": 0, "numbers": numbers, "after": "", "job_name": "x"}
    ]
    answers = "".join(row(f"7_{number}", "RUNNING" if number < 20 else "PENDING", "Resources", "a") for number in numbers)
    final_rows = "".join(row(f"7_{number}", "FAILED" if number == 6 else "COMPLETED", node="a") for number in numbers)
    script_slurm(sbatch="7\n", squeue=[answers, final_rows, ""], scontrol="")
    submit.submit(spec(files=files))
    assert [event["job"] for event in watch.look(Job("r1"))] == [f"7_{number}" for number in numbers]
    Path(Job("r1").path("logs", "7_6-a.out")).touch()
    watch.look(Job("r1"))
    lines = [line.partition(" ")[2] for line in log().splitlines()]
    assert lines == [
        "sbatch --parsable job.sbatch -> job 7",
        "of 100 jobs: 90 PENDING, 10 RUNNING",
        "job 7_6 is FAILED on a",
        "of 100 jobs: 99 COMPLETED, 1 FAILED",
    ]
    exit_record = Job("r1").read("exit.json")
    assert (exit_record["code"], len(exit_record["jobs"])) == (1, 100)
