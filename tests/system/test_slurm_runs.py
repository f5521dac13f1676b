"""Run under a real Slurm: an exercise, a terminal, and batch files as other people write them, and how each ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system import slurm
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.system.slurm import read_verdicts
from tests.waiting import until

pytestmark = pytest.mark.system

SLEEPS = "import sys, time\nprint('begun', flush=True)\ntime.sleep(float(sys.argv[1]))\nprint('done', flush=True)\n"


def write_batch(folder: Path, name: str, *lines: str) -> str:
    """Write a learner's own batch file, and return its path."""
    path = folder / name
    path.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    return str(path)


def read_outputs(cluster: Learner) -> dict[str, str]:
    """Return the collected outputs, by their names."""
    folder = cluster.run_folder() / "outputs" / "node0"
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@needs_torch
def test_exercise_submits_several_jobs_shows_the_queue_and_cancels_one(cluster: Learner) -> None:
    """With the batch file that the learner wrote."""
    batch_file = cluster.workspace / "exercises/02-slurm/my_job.sbatch"
    batch_file.parent.mkdir(parents=True, exist_ok=True)
    solution = (slurm.EXERCISES / "solutions" / batch_file.name).read_text()
    batch_file.write_text(f"{solution}# a line of the learner\n")
    ran = cluster.types("run", "2.1", "--set", "jobs=4", "--set", "seconds=2", "--set", "size=256")
    assert "sbatch --parsable my_job.sbatch --seconds=2" in ran.err
    assert set(read_verdicts(cluster).values()) == {"passed"}
    picture = next(cluster.run_folder().glob("outputs/*/squeue.txt")).read_text()
    assert picture.startswith("$ squeue -u ")
    assert "(Resources)" in picture
    assert picture.splitlines()[1] in ran.err  # the picture is on the screen unchanged
    assert "scancel" in ran.err
    jobs = json.loads((cluster.run_folder() / "metrics.json").read_text())["slurm"]["jobs"]
    assert [job["state"] for job in jobs] == ["COMPLETED"] * 3 + ["CANCELLED"]
    assert len({job["node"] for job in jobs[:3]}) == 3
    folder = cluster.workspace / "deliverables/2.1"
    assert list(folder.rglob("squeue.txt"))
    assert "a line of the learner" in (folder / "my_job.sbatch").read_text()


@pytest.mark.slow
def test_closed_terminal_on_a_node_returns_the_gpu(cluster: Learner) -> None:
    assert "in your own terminal" in cluster.types("run", "2.2", code=2).err
    question = "echo GPUS=[$CUDA_VISIBLE_DEVICES]\n"
    slurm.in_terminal(cluster, ["run", "2.2", "--no-predict"], [(r"@\S*node[0-9]", question)], closed_at=r"GPUS=\[0\]")
    until(lambda: not slurm.queue(cluster), "the end of its jobs")  # a job may be completing
    assert cluster.newest_run()["state"] == "succeeded"
    assert read_verdicts(cluster)["free-again"] == "passed"
    assert "GPUS=[0]" in (cluster.run_folder() / "transcript.txt").read_text()


@pytest.mark.slow
@needs_torch
def test_script_of_the_learner_returns_the_held_gpu_and_cannot_cancel_anything_else(cluster: Learner) -> None:
    release = cluster.workspace / "exercises/02-slurm/my_release.sh"
    release.parent.mkdir(parents=True, exist_ok=True)
    release.write_text("scancel $SLURM_JOB_ID\n" + (slurm.EXERCISES / "solutions" / release.name).read_text())
    try:
        slurm.in_terminal(
            cluster, ["run", "2.2", "--no-predict"], [(r"@\S*node[0-9]", "python held.py\n"), ("written: ", "exit\n")]
        )
    finally:
        release.unlink()
    verdicts = read_verdicts(cluster)
    assert (verdicts["someone-waits"], verdicts["given-back"], verdicts["right-job"]) == ("passed", "passed", "failed")
    assert cluster.newest_run()["state"] == "succeeded"


def test_batch_file_keeps_its_options_variables_and_error_file(cluster: Learner, tmp_path: Path) -> None:
    lines = (
        '#SBATCH --job-name="two words" # of mine',
        "#SBATCH --nodes=1 --ntasks=2",
        "#SBATCH --output=logs/%x.%N.out",
        "#SBATCH --error logs/%j.err",
        "module load cuda/12.1",
        'echo "$SLURM_JOB_NAME|$SLURM_NTASKS|$TMPDIR|$TRITON_CACHE_DIR|$1|$MINE|${#TOKEN}"',
        "touch $TMPDIR/left",
        "python -c \"import os; raise ValueError('no such model')\"",
    )
    batch = write_batch(tmp_path, "train it.sh", *lines)
    words = ("run", "--script", batch, "--env", "MINE=a", "--env", "TOKEN")
    ran = cluster.types(*words, "--", "hello", code=4, TOKEN="3f9c")
    assert "[script-error]" in ran.out
    assert "ValueError: no such model" in ran.out
    assert "without a traceback" not in ran.out
    ((name, text),) = read_outputs(cluster).items()
    assert name.startswith("logs/")
    assert "ValueError: no such model" in text
    log = next(cluster.run_folder().glob("logs/*-rank0.log")).read_text()
    assert "ValueError: no such model" in log
    job_name, tasks, temporary, cache, *fields = log.splitlines()[0].split("|")
    assert (job_name, tasks, fields) == ("two words", "2", ["hello", "a", "4"])
    until(lambda: not slurm.queue(cluster), "the end of its jobs")  # a job may be completing
    assert cache.endswith("/.gpucourse/cache/triton")
    if temporary != "/tmp":  # which it is if a long user name makes the shared path too long for sockets
        assert slurm.on_head(cluster, f"ls -d {temporary}", code=None) == ""
    assert (cluster.run_folder() / "job.sbatch").read_text() == Path(batch).read_text()
    message = cluster.types("run", "--script", write_batch(tmp_path, "wrong.sh", "#SBATCH --nodez=2"), code=2).err
    assert "sbatch does not understand the file (node0 said: sbatch: unrecognized option '--nodez=2'" in message
    assert "wrong.sh" not in slurm.on_head(cluster, "squeue -h -t all -o %j")


def test_array_has_a_row_and_a_log_for_each_task(cluster: Learner, tmp_path: Path) -> None:
    lines = (
        "#SBATCH --array=2-10:2%4",
        "#SBATCH --output=%A-%a.txt",
        'echo "task $SLURM_ARRAY_TASK_ID"',
        'if [ "$SLURM_ARRAY_TASK_ID" = 6 ]; then exit 3; fi',
    )
    ran = cluster.types("run", "--script", write_batch(tmp_path, "array.sh", *lines), code=4)
    rows = cluster.newest_run()["slurm"]["jobs"]
    numbers = [int(job["job"].partition("_")[2]) for job in rows]
    assert numbers == [2, 4, 6, 8, 10]
    assert [job["code"] for job in rows] == [0, 0, 3, 0, 0]
    logs = {path.name.rpartition("rank")[2]: path.read_text() for path in cluster.run_folder().glob("logs/*-rank*.log")}
    assert logs == {f"{row}.log": f"task {number}\n" for row, number in enumerate(numbers)}
    assert f"job {rows[2]['job']} FAILED" in " ".join(ran.out.split())


def test_cancel_ends_every_job(cluster: Learner) -> None:
    file = cluster.workspace / "exercises/02-slurm/first_job.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"import sys\nsys.argv[1:] = ['120']\n{SLEEPS}", encoding="utf-8")
    try:
        cluster.types("run", "2.1", "--set", "jobs=4", "--detach")
    finally:
        file.unlink()
    until(lambda: len(slurm.queue(cluster)) == 3, "the queue of 2.1")  # the exercise itself has cancelled the last one
    cluster.types("cancel", "latest")
    until(lambda: not slurm.queue(cluster), "the end of its jobs")  # a job may be completing
    assert cluster.newest_run()["state"] == "cancelled"
    assert "has ended already" in cluster.types("cancel", "latest", code=2).err


@pytest.mark.slow
def test_outputs_of_jobs_that_a_job_submitted_are_collected_later(cluster: Learner, tmp_path: Path) -> None:
    """Destroy the lab at the end, so this is the last test of the file."""
    wait = "while [ ! -e go ]; do sleep 0.1; done; echo first > first.txt"
    chain = f'first=$(sbatch --parsable --job-name=first --wrap "{wait}")'
    last = "sbatch --dependency=afterok:$first --job-name='the last' --wrap 'echo last > last.txt; sleep 600'"
    batch = write_batch(tmp_path, "chain.sh", "#SBATCH -N 1", chain, last, "echo all > all.txt")
    ran = cluster.types("run", "--script", batch)
    record = cluster.newest_run()
    later_jobs = [(job["job"], job["name"]) for job in record["slurm"]["later"]]
    assert [name for _, name in later_jobs] == ["first", "the last"]
    output = " ".join(ran.out.split())
    assert f"2 jobs still running, submitted by this run: {later_jobs[0][0]} first, {later_jobs[1][0]} the last" in output
    assert {"all.txt"} <= set(read_outputs(cluster))
    work = slurm.on_head(cluster, f"scontrol show job {later_jobs[0][0]} | sed -n 's/.*WorkDir=//p'").strip()
    slurm.on_head(cluster, f"touch {work}/go")
    slurm.eventually(cluster, "last.txt", f"ls {work}")
    logs = cluster.types("logs", record["id"])
    assert f"1 job still running, submitted by this run: {later_jobs[1][0]} the last" in " ".join(logs.err.split())
    assert read_outputs(cluster)["first.txt"] == "first\n"
    (cluster.run_folder() / "outputs/node0/last.txt").unlink(missing_ok=True)
    result = cluster.types("destroy", "2", "--yes")
    assert "ending 1 job that its own jobs submitted" in " ".join(result.err.split())
    assert read_outputs(cluster).get("last.txt") == "last\n", result.err
    record = cluster.newest_run()
    assert (record["slurm"]["later"], record["collected"], record["state"]) == ([], True, "succeeded")
    assert "outputs/node0/last.txt" in json.loads((cluster.run_folder() / "hashes.json").read_text())["sha256"]
