"""Slurm's daemons fail under a run that somebody follows: the screen says what happened and what to type, and that is typed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.system import slurm
from tests.system.cli import Learner, wait_for_words
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system

WORKS = """
import os, sys, time
again = os.environ.get("SLURM_RESTART_COUNT")
print("begun", "again" if again else "", flush=True)
while not again and not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("done", flush=True)
"""
WRONG_REASONS = Path(__file__).parents[1] / "data" / "slurm" / "23.11.4" / "slurmctld.log"
STORED = "/var/lib/slurm/slurmctld/job_state"


@dataclass(frozen=True)
class Work:
    """A run under way, of a script that works until it is let go, and is done at once where Slurm starts it again."""

    running: subprocess.Popen[bytes]
    go: Path
    cluster: Learner

    def let_go(self) -> None:
        """Have the script end."""
        slurm.inside(self.cluster, "node0", "touch", str(self.go))

    def succeeds(self) -> None:
        """Wait for the end of the run, which must be a good one."""
        _, err = self.running.communicate(timeout=STUCK_S)
        assert self.running.returncode == 0, err.decode()


@pytest.fixture
def work(cluster: Learner, tmp_path: Path) -> Iterator[Work]:
    """A run that somebody follows, as soon as its job began."""
    go = Path("/shared") / tmp_path.name
    running = cluster.begins(*slurm.OWN, slurm.script(tmp_path, WORKS), "--", str(go))
    try:
        yield Work(running, go, cluster)
    finally:
        running.kill()
        running.communicate()
        cluster.types("deploy", "2", "--quiet")  # whatever the test has broken
        cluster.types("cancel", code=None)  # where the test left it under way
        assert slurm.queue(cluster) == []


def kill_slurmd(cluster: Learner, node: str) -> None:
    slurm.inside(cluster, node, "pkill", "-KILL", "-x", "slurmd")


@pytest.mark.parametrize(
    ("harm", "seen"),
    [pytest.param(kill_slurmd, "slurmd of it ended", marks=pytest.mark.slow), (slurm.power_off, "it is off")],
)
def test_a_node_that_fails_under_a_job(cluster: Learner, work: Work, harm: Callable[[Learner, str], None], seen: str) -> None:
    running = work.running
    node = wait_for_words(running, b"is RUNNING on").split()[-1]
    harm(cluster, node)
    # By itself Slurm comes to this after SlurmdTimeout and a round of its questions, half a minute.
    slurm.inside(cluster, "node0", "scontrol", "update", f"nodename={node}", "state=down", "reason=Not responding")
    assert re.search(
        rf"its node failed \({node} is down\*?: Not responding", wait_for_words(running, b"put back into the queue")
    )
    waits = wait_for_words(running, b"two minutes")
    assert "BeginTime" in waits
    assert "Output that still appears there is from the first start" in wait_for_words(running, b"gpucourse deploy 2")
    type_what_is_told(cluster, waits)
    work.succeeds()
    job = cluster.newest_run()["slurm"]["jobs"][0]
    assert (job["state"], job["restarts"]) == ("COMPLETED", 1)
    assert job["node"] != node
    healths = {node_health["node"]: node_health for node_health in cluster.documents("status")["stacks"][0]["nodes"]}
    assert seen in healths[node]["detail"]
    cluster.types("deploy", "2", "--quiet")
    slurm.eventually(cluster, r"^3$", "sinfo -h -N -t idle -o %N | wc -l")


@pytest.mark.slow
def test_a_node_that_nobody_but_slurm_finds_dead(cluster: Learner, work: Work) -> None:
    node = wait_for_words(work.running, b"is RUNNING on").split()[-1]
    kill_slurmd(cluster, node)
    assert f"{node} is down*: Not responding" in wait_for_words(work.running, b"put back into the queue")
    type_what_is_told(cluster, wait_for_words(work.running, b"two minutes"))
    work.succeeds()


@pytest.mark.slow  # test_slurm_machines.py has jobs that go on, without a command that watches them
def test_slurmctld_stopped_and_started_again(cluster: Learner, work: Work) -> None:
    wait_for_words(work.running, b"is RUNNING on")
    slurm.inside(cluster, "node0", "pkill", "-TERM", "-x", "slurmctld")
    cluster.types("deploy", "2", "--quiet")
    work.let_go()
    work.succeeds()
    assert cluster.newest_run()["slurm"]["jobs"][0]["restarts"] == 0


@pytest.mark.slow
def test_slurmctld_killed_when_it_had_stored_the_job(cluster: Learner, work: Work) -> None:
    job = wait_for_words(work.running, b"is RUNNING on").partition("job ")[2].split()[0]
    since = slurm.inside(cluster, "node0", "date", "+%s.%N")
    # Slurm stores what changes, within seconds; that the job runs may be stored by now, and would not be once more.
    slurm.inside(cluster, "node0", "scontrol", "update", f"JobId={job}", "Comment=to be stored")
    until(lambda: float(slurm.inside(cluster, "node0", "stat", "--format=%.Y", STORED)) > float(since), "a stored state")
    slurm.inside(cluster, "node0", "pkill", "-KILL", "-x", "slurmctld")
    wait_for_words(work.running, b"Slurm does not answer")
    way_back = wait_for_words(work.running, b"this starts it again").rpartition("gpucourse ")[2]
    cluster.types(*way_back.split(), "--quiet")
    wait_for_words(work.running, b"Slurm answers again")
    work.let_go()
    work.succeeds()
    assert cluster.newest_run()["slurm"]["jobs"][0]["restarts"] == 0


@pytest.mark.slow
def test_slurmctld_killed_in_the_first_seconds_of_a_job(cluster: Learner, work: Work) -> None:
    wait_for_words(work.running, b"begun")
    slurm.inside(cluster, "node0", "pkill", "-KILL", "-x", "slurmctld")
    status = cluster.documents("status")["stacks"][0]["nodes"][0]
    assert "one just submitted may restart or be lost" in status["detail"]
    cluster.types("deploy", "2", "--quiet")
    work.let_go()
    told = ""
    for line in iter(work.running.stderr.readline, b"") if work.running.stderr else ():
        told += line.decode()
        type_what_is_told(cluster, line.decode())
    out, _ = work.running.communicate(timeout=STUCK_S)
    # Whether Slurm had stored the job by then, or only that it waited, is a matter of milliseconds.
    if work.running.returncode == 0:
        assert b"succeeded" in out
    else:
        assert work.running.returncode == 4, told
        assert "the job is lost and must be run again" in told
        assert b"run it again: gpucourse run --script" in out
        assert cluster.newest_run()["diagnoses"][0]["symptom"] == "job-lost"


@pytest.mark.slow
def test_a_job_over_its_time_limit(cluster: Learner, work: Work) -> None:
    job = wait_for_words(work.running, b"is RUNNING on").partition("job ")[2].split()[0]
    # Limits are whole minutes, so an administrator moves the end here; Slurm looks every half minute.
    slurm.inside(cluster, "node0", "scontrol", "update", f"JobId={job}", "EndTime=now")
    out, err = work.running.communicate(timeout=STUCK_S)
    assert work.running.returncode == 4
    assert b"is TIMEOUT: it reached its time limit, and Slurm ended it" in err
    assert b"--timeout 30m" in out
    assert cluster.newest_run()["state"] == "timed_out"


def test_what_munge_refuses_is_named_and_deploy_mends_it(cluster: Learner) -> None:
    slurm.inside(cluster, "node0", "pkill", "-KILL", "-x", "munged")
    refused = cluster.types("run", "2.1", code=6).err
    assert "munged does not answer" in refused
    assert "gpucourse deploy 2 starts it again" in refused
    slurm.inside(cluster, "node1", "sh", "-c", "head -c 512 /dev/urandom > /etc/munge/munge.key")
    healths = {node["node"]: node["detail"] for node in cluster.documents("status")["stacks"][0]["nodes"]}
    assert healths["node0"] == "munged of it ended"
    assert healths["node1"] == "munge refuses: the machine has another munge.key than the head"
    cluster.types("deploy", "2", "--quiet")
    assert all(node["healthy"] for node in cluster.documents("status")["stacks"][0]["nodes"])


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
    """The command that a line of the screen names to skip a wait, or to let a job go. It may come too late: no harm."""
    if named := re.search(r"To (?:skip them|let it go): gpucourse ([^;]+)", line):
        cluster.types(*named[1].split(), code=None)
