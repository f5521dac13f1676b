"""Slurm's daemons fail under a run that somebody follows: the screen says what happened and what to type, and that is typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system import slurm
from tests.system.cli import Learner, heard, until

pytestmark = pytest.mark.system

WORKS = """
import os, sys, time
again = os.environ.get("SLURM_RESTART_COUNT")
print("begun", "again" if again else "", flush=True)
time.sleep(0 if again else float(sys.argv[1]))
print("done", flush=True)
"""
WRONG_REASONS = Path(__file__).parents[1] / "data" / "slurm" / "23.11.4" / "slurmctld.log"
STORED = "/var/lib/slurm/slurmctld/job_state"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody with module 2's lab up."""
    one = Learner(tmp_path_factory.mktemp("cluster") / "workspace")
    slurm.stand_up(one)
    yield one
    one.types("destroy", "2", "--yes", "--discard", "--quiet")
    assert one.processes() == []


@pytest.fixture
def worker(cluster: Learner, tmp_path: Path) -> Iterator[str]:
    """A script that works for as long as it is told, and is done at once where Slurm starts it again."""
    yield slurm.script(tmp_path, WORKS)
    cluster.types("deploy", "2", "--quiet")  # whatever the test has broken
    assert slurm.queue(cluster) == []


def test_a_node_that_fails_under_a_job(cluster: Learner, worker: str) -> None:
    running = cluster.begins("run", "2.1", "--script", worker, "--", "120")
    node = heard(running, b"is RUNNING on").split()[-1]
    slurm.inside(cluster, node, "pkill", "-KILL", "-x", "slurmd")
    # By itself Slurm comes to this after SlurmdTimeout and a round of its questions, half a minute.
    slurm.inside(cluster, "node0", "scontrol", "update", f"nodename={node}", "state=down", "reason=Not responding")
    assert re.search(rf"its node failed \({node} is down\*?: Not responding", heard(running, b"put back into the queue"))
    waits = heard(running, b"two minutes")
    assert "BeginTime" in waits
    assert "What may still be printed there is of the first start" in heard(running, b"gpucourse deploy 2")
    type_what_is_told(cluster, waits)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0, err.decode()
    job = cluster.newest_run()["slurm"]["jobs"][0]
    assert (job["state"], job["restarts"]) == ("COMPLETED", 1)
    assert job["node"] != node


@pytest.mark.thorough
def test_a_node_that_nobody_but_slurm_finds_dead(cluster: Learner, worker: str) -> None:
    running = cluster.begins("run", "2.1", "--script", worker, "--", "200")
    node = heard(running, b"is RUNNING on").split()[-1]
    slurm.inside(cluster, node, "pkill", "-KILL", "-x", "slurmd")
    assert f"{node} is down*: Not responding" in heard(running, b"put back into the queue", seconds=120)
    waits = heard(running, b"two minutes")
    type_what_is_told(cluster, waits)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0, err.decode()


def test_slurmctld_stopped_and_started_again(cluster: Learner, worker: str) -> None:
    running = cluster.begins("run", "2.1", "--script", worker, "--", "5")
    heard(running, b"is RUNNING on")
    slurm.inside(cluster, "node0", "pkill", "-TERM", "-x", "slurmctld")
    cluster.types("deploy", "2", "--quiet")
    _, err = running.communicate(timeout=90)
    assert running.returncode == 0, err.decode()
    assert cluster.newest_run()["slurm"]["jobs"][0]["restarts"] == 0


def test_slurmctld_killed_when_it_had_stored_the_job(cluster: Learner, worker: str) -> None:
    running = cluster.begins("run", "2.1", "--script", worker, "--", "12")
    heard(running, b"is RUNNING on")
    since = slurm.inside(cluster, "node0", "date", "+%s.%N")
    until(lambda: float(slurm.inside(cluster, "node0", "stat", "--format=%.Y", STORED)) > float(since), what="a state stored")
    slurm.inside(cluster, "node0", "pkill", "-KILL", "-x", "slurmctld")
    heard(running, b"Slurm does not answer")
    way_back = heard(running, b"brought back by").rpartition("gpucourse ")[2]
    cluster.types(*way_back.split(), "--quiet")
    assert "Slurm answers again" in heard(running, b"again")
    _, err = running.communicate(timeout=60)
    assert running.returncode == 0, err.decode()
    assert cluster.newest_run()["slurm"]["jobs"][0]["restarts"] == 0


def test_slurmctld_killed_in_the_first_seconds_of_a_job(cluster: Learner, worker: str) -> None:
    running = cluster.begins("run", "2.1", "--script", worker, "--", "5")
    heard(running, b"begun")
    slurm.inside(cluster, "node0", "pkill", "-KILL", "-x", "slurmctld")
    status = cluster.documents("status")["stacks"][0]["nodes"][0]
    assert "one just submitted may start anew or be lost" in status["detail"]
    cluster.types("deploy", "2", "--quiet")
    told = ""
    for line in iter(running.stderr.readline, b"") if running.stderr else ():
        told += line.decode()
        type_what_is_told(cluster, line.decode())
    out, _ = running.communicate(timeout=60)
    # Whether Slurm had stored the job by then, or only that it waited, is a matter of milliseconds.
    if running.returncode == 0:
        assert b"succeeded" in out
    else:
        assert running.returncode == 4, told
        assert "the job is lost, and to be run again" in told
        assert b"gpucourse run 2.1" in out
        assert cluster.newest_run()["diagnoses"][0]["symptom"] == "job-lost"


def test_a_slurm_that_names_wrong_reasons_is_found_at_deploy(cluster: Learner) -> None:
    log = "/var/log/slurm/slurmctld.log"
    slurm.inside(cluster, "node0", "cp", log, f"{log}.before")
    slurm.inside(cluster, "node0", "sh", "-c", f"printf %s '{WRONG_REASONS.read_text(encoding='utf-8')}' >> {log}")
    said = cluster.types("deploy", "2", code=6).err
    assert "InvalidAccount instead of Resources" in said
    assert "libpmix2t64" in said
    slurm.inside(cluster, "node0", "cp", f"{log}.before", log)
    cluster.types("deploy", "2", "--quiet")


def type_what_is_told(cluster: Learner, line: str) -> None:
    """The command that a line of the screen names to skip a wait, or to let a job go."""
    if named := re.search(r"To (?:skip them|let it go): gpucourse ([^;]+)", line):
        cluster.types(*named[1].split())
