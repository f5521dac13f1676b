"""What goes wrong with a run under Slurm: each is named, nothing is lost, and nothing stays in the queue."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system import slurm
from tests.system.cli import Learner
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

SLEEPS = "import sys, time\nprint('begun', flush=True)\ntime.sleep(float(sys.argv[1]))\nprint('done', flush=True)\n"


WORKS = """
import os, sys, time
print("begun", flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("done", flush=True)
"""


@pytest.fixture
def go(cluster: Learner, tmp_path: Path) -> Iterator[Path]:
    """The file on the cluster that ends WORKS. After the test it is there."""
    file = Path("/shared") / tmp_path.name
    yield file
    let_go(cluster, file)


def let_go(cluster: Learner, go: Path) -> None:
    slurm.inside(cluster, "node0", "touch", str(go))


@pytest.fixture
def sleeper(tmp_path: Path) -> str:
    """A script that says that it has begun, and sleeps."""
    return slurm.script(tmp_path, SLEEPS)


def state(cluster: Learner) -> str:
    return str(cluster.newest_run()["state"])


def test_more_nodes_than_there_are(cluster: Learner) -> None:
    said = cluster.types("run", "2.3", "--nodes", "9", code=2).err
    assert "9 nodes were asked for, and the partition gpu has 3 nodes" in said
    assert "gpucourse deploy 2 --nodes 9" in said


def test_no_such_partition(cluster: Learner) -> None:
    said = cluster.types("run", "2.1", "--set", "partition=cpu", code=2).err
    assert "no partition 'cpu'; it has: gpu" in said
    assert "--set partition=gpu" in said


def batch(folder: Path, *wishes: str, body: str = "srun hostname") -> str:
    """A batch file of the learner's own, and where it is."""
    path = folder / "own.sbatch"
    path.write_text("\n".join(["#!/bin/bash", *(f"#SBATCH {wish}" for wish in wishes), body, ""]), encoding="utf-8")
    return str(path)


def test_a_batch_file_of_ones_own(cluster: Learner, tmp_path: Path) -> None:
    own = batch(
        tmp_path, "--nodes=2", "--gres=gpu:1", "--output=mine-%j.out", body="srun hostname; echo $1 $MINE ${#TOKEN} > said.txt"
    )
    variables = ("--env", "MINE=a", "--env", "TOKEN")
    ran = cluster.types("run", "--script", own, *variables, "--", "hello", TOKEN="3f9c")
    assert "1 job on 2 nodes" in ran.out
    assert "node2" in ran.err
    assert next(cluster.run_folder().glob("outputs/*/said.txt")).read_text() == "hello a 4\n"
    assert (cluster.run_folder() / "job.sbatch").read_text() == Path(own).read_text()


def test_the_error_file_of_a_batch_file_is_read_and_comes_home(cluster: Learner, tmp_path: Path) -> None:
    body = "echo begun; python3 -c 'raise ValueError(\"no such model\")'"
    typed = cluster.types("run", "--script", batch(tmp_path, "--error=err-%j.txt", body=body), code=4)
    record = cluster.newest_run()
    assert record["diagnoses"][0]["symptom"] == "script-error"
    assert "raised ValueError" in typed.out
    assert "no such model" in typed.err
    assert "no such model" in cluster.types("logs").out
    (home,) = cluster.run_folder().glob("outputs/*/err-*.txt")
    assert "no such model" in home.read_text()


@pytest.mark.parametrize(
    ("wish", "words", "way"),
    [
        (
            "--nodez=2",
            "sbatch does not understand the file (node0 said: sbatch: unrecognized option '--nodez=2'",
            "fix the line",
        ),
        ("--gres=gpu:2", "no set of nodes of this cluster can ever give what the job asks for", "sinfo -N"),
        ("--partition=cpu", "no partition 'cpu'; it has: gpu", "--set partition=gpu"),
    ],
)
def test_a_mistake_in_a_batch_file(cluster: Learner, tmp_path: Path, wish: str, words: str, way: str) -> None:
    said = cluster.types("run", "--script", batch(tmp_path, wish), code=2).err
    assert words in said
    assert way in said.splitlines()[-1]
    assert slurm.queue(cluster) == []


def test_a_batch_file_without_first_line_and_one_with_a_syntax_error(cluster: Learner, tmp_path: Path) -> None:
    own = Path(batch(tmp_path, "--nodes=2", body="if true; then"))
    said = cluster.types("run", "--script", str(own), code=4)
    assert "syntax error" in said.err
    assert "not all of its jobs succeeded" in said.out
    own.write_text("echo no shebang\n", encoding="utf-8")
    assert "does not look like a batch script" in cluster.types("run", "--script", str(own), code=2).err


def test_a_drained_node_is_named_with_its_reason(cluster: Learner, sleeper: str) -> None:
    update = "scontrol update nodename=node3 state={}"
    drain = f"{update.format('drain')} reason=fan"
    if cluster.types("ssh", "2", "--", f"{drain} || sudo -n {drain}", code=None).code:
        pytest.skip("this user may not drain a node")
    try:
        said = cluster.types("run", "2.3", "--nodes", "3", code=3).err
        assert "node3 is drain" in said
        assert "(fan)" in said
        two = ("run", "--launcher", "slurm", "--nodes", "2")
        assert "(fan); the others are enough" in cluster.types(*two, "--script", sleeper, "--", "0").err
    finally:
        slurm.on_head(cluster, f"{update.format('resume')} || sudo -n {update.format('resume')}")


def test_a_process_that_fails_is_named(cluster: Learner, tmp_path: Path) -> None:
    own = slurm.script(tmp_path, "import os, sys, time\nif os.environ['RANK'] == '1': sys.exit(7)\ntime.sleep(3600)\n")
    said = cluster.types("run", "--launcher", "slurm", "--nodes", "2", "--script", own, code=4)
    assert "rank 1 on node2 was the first to fail, with code 7" in said.out
    assert slurm.queue(cluster) == []


@pytest.mark.slow
def test_a_failed_array_task_keeps_the_dependent_job_from_starting(cluster: Learner) -> None:
    said = cluster.types("run", "2.4", "--set", "values=0.001,none", "--set", "epochs=1", "--set", "seeds=1", code=4)
    record = cluster.newest_run()
    states = {job["job"].rpartition("_")[2]: job["state"] for job in record["slurm"]["jobs"]}
    assert states["0"] == "COMPLETED"
    assert states["1"] == "FAILED"
    assert record["slurm"]["jobs"][-1]["state"] == "CANCELLED"
    assert "there is no number for task 1" in said.err
    assert slurm.queue(cluster) == []


def test_scancel_from_another_terminal(cluster: Learner, sleeper: str) -> None:
    running = cluster.begins(*slurm.OWN, sleeper, "--", "120")
    job = slurm.eventually(cluster, "RUNNING", "squeue -h -o '%i %T'").split()[0]
    slurm.on_head(cluster, f"scancel {job}")
    out, _ = running.communicate(timeout=STUCK_S)
    assert running.returncode == 4
    assert state(cluster) == "cancelled"
    assert f"job {job} CANCELLED".encode() in out


def test_cancel_ends_every_job_and_proves_it(cluster: Learner) -> None:
    mine = cluster.workspace / "exercises/02-slurm/first_job.py"
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text(f"import sys\nsys.argv[1:] = ['120']\n{SLEEPS}", encoding="utf-8")
    try:
        cluster.types("run", "2.1", "--set", "jobs=4", "--detach")
    finally:
        mine.unlink()
    assert len(slurm.queue(cluster)) == 3  # the exercise itself has cancelled the last one
    cluster.types("cancel")
    assert slurm.queue(cluster) == []
    assert state(cluster) == "cancelled"
    assert "has ended already" in cluster.types("cancel", code=2).err


@pytest.mark.slow
def test_a_terminal_that_vanishes_loses_nothing(cluster: Learner, tmp_path: Path, go: Path) -> None:
    running = cluster.begins(*slurm.OWN, slurm.script(tmp_path, WORKS), "--", str(go))
    slurm.eventually(cluster, "RUNNING", "squeue -h -o '%T'")
    running.kill()
    running.communicate()
    assert cluster.newest_run()["state"] in {"running", "starting"}
    let_go(cluster, go)
    slurm.eventually(cluster, "^$", "squeue -h")
    cluster.types("runs")
    assert state(cluster) == "succeeded"
    assert "done" in cluster.types("logs").out


def test_a_connection_that_is_cut_is_made_anew_and_the_job_goes_on(cluster: Learner, tmp_path: Path, go: Path) -> None:
    running = cluster.begins(*slurm.OWN, slurm.script(tmp_path, WORKS), "--", str(go))
    slurm.eventually(cluster, "RUNNING", "squeue -h -o '%T'")
    cut = "kill $(ps -eo pid=,args= | awk '/sshd: .*@notty/ && !/awk/ {print $1}')"  # this very connection as well
    slurm.on_head(cluster, cut, code=None)
    let_go(cluster, go)
    out, err = running.communicate(timeout=STUCK_S)
    assert running.returncode == 0, err.decode()
    assert "✓ succeeded".encode() in out
    assert sum(line.endswith(b"] done") for line in err.splitlines()) == 1


@pytest.mark.slow
def test_a_job_over_its_time_limit(cluster: Learner, sleeper: str) -> None:
    ran = cluster.types(*slurm.OWN, sleeper, "--timeout", "10s", "--", "300", code=4, timeout=240)
    assert "#SBATCH --time=00:01:00" in (cluster.run_folder() / "job.sbatch").read_text()
    assert "is TIMEOUT: it reached its time limit, and Slurm ended it" in ran.err
    assert state(cluster) == "timed_out"
    assert json.loads((cluster.run_folder() / "run.json").read_text())["slurm"]["jobs"][0]["state"] == "TIMEOUT"


STEADFAST = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open(sys.argv[1], "x").close()
time.sleep(600)
"""


@pytest.mark.slow
def test_killed_jobs_that_slurm_has_forgotten_are_no_success(cluster: Learner, tmp_path: Path) -> None:
    """There is no accounting, Slurm forgets a job at once, and the script ends well although it was told to end."""
    conf = "/etc/slurm/slurm.conf"
    slurm.inside(cluster, "node0", "cp", conf, f"{conf}.before")
    slurm.inside(cluster, "node0", "sed", "-i", "s/^MinJobAge=.*/MinJobAge=2/", conf)
    slurm.inside(cluster, "node0", "scontrol", "reconfigure")
    try:
        own = slurm.script(tmp_path, STEADFAST)
        jobs = []
        for number in "12":
            begun = f"/shared/{tmp_path.name}-{number}"
            cluster.types(*slurm.OWN, own, "--detach", "--", begun)
            jobs.append(slurm.on_head(cluster, "squeue -h -o %i --sort=-i").split()[0])
            slurm.eventually(cluster, begun, f"ls {begun}")
        slurm.on_head(cluster, f"scancel {jobs[0]}")
        slurm.inside(cluster, "node0", "scontrol", "update", f"JobId={jobs[1]}", "EndTime=now")
        for job in jobs:
            slurm.eventually(cluster, "Invalid job id", f"scontrol show job {job} 2>&1")
        cluster.types("runs")
        records = [json.loads(file.read_text()) for file in cluster.list_records()]
        of_jobs = [record for record in records if {job["job"] for job in record["slurm"]["jobs"]} & {*jobs}]
        assert len(of_jobs) == 2
        for record in of_jobs:
            assert record["state"] == "failed"
            assert [(job["state"], job["code"]) for job in record["slurm"]["jobs"]] == [("FAILED", 143)]
            assert record["diagnoses"][0]["title"].startswith("A signal ended job ")
    finally:
        slurm.inside(cluster, "node0", "mv", f"{conf}.before", conf)
        slurm.inside(cluster, "node0", "scontrol", "reconfigure")
