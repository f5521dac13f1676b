"""Slurm's daemons fail, or the host of a cluster does: the screen says what happened and what to type, and that is typed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.workspace.lock import is_held
from tests.system import slurm
from tests.system.cli import Learner, wait_for_words
from tests.waiting import STUCK_S, until

pytestmark = [pytest.mark.system, pytest.mark.slow]  # test_slurm_machines.py has what dies, without a run

WORKS = """
import os, sys, time
again = os.environ.get("SLURM_RESTART_COUNT")
print("begun", "again" if again else "", flush=True)
while not again and not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
print("done", flush=True)
"""
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


def test_node_that_fails_under_a_job_is_named_and_its_job_starts_again(cluster: Learner, work: Work) -> None:
    running = work.running
    node = wait_for_words(running, b"is RUNNING on").split()[-1]
    slurm.power_off(cluster, node)
    # By itself Slurm comes to this after SlurmdTimeout and a round of its questions, half a minute.
    slurm.inside(cluster, "node0", "scontrol", "update", f"nodename={node}", "state=down", "reason=Not responding")
    assert re.search(
        rf"its node failed \({node} is down\*?: Not responding", wait_for_words(running, b"put back into the queue")
    )
    waits = wait_for_words(running, b"two minutes")
    assert "BeginTime" in waits
    assert "Output that still appears there is from the first start" in wait_for_words(running, b"gpucourse deploy 2")
    type_command(cluster, waits)
    work.succeeds()
    job = cluster.newest_run()["slurm"]["jobs"][0]
    assert (job["state"], job["restarts"]) == ("COMPLETED", 1)
    assert job["node"] != node
    healths = {node_health["node"]: node_health for node_health in cluster.documents("status")["stacks"][0]["nodes"]}
    assert "it is off" in healths[node]["detail"]
    cluster.types("deploy", "2", "--quiet")
    slurm.eventually(cluster, r"^3$", "sinfo -h -N -t idle -o %N | wc -l")


def test_job_goes_on_if_slurmctld_had_stored_it_before_it_was_killed(cluster: Learner, work: Work) -> None:
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


def test_job_over_its_time_limit_is_named(cluster: Learner, work: Work) -> None:
    job = wait_for_words(work.running, b"is RUNNING on").partition("job ")[2].split()[0]
    # Limits are whole minutes, so an administrator moves the end here; Slurm looks every half minute.
    slurm.inside(cluster, "node0", "scontrol", "update", f"JobId={job}", "EndTime=now")
    out, err = work.running.communicate(timeout=STUCK_S)
    assert work.running.returncode == 4
    assert b"is TIMEOUT: it reached its time limit, and Slurm ended it" in err
    assert b"--timeout 30m" in out
    assert cluster.newest_run()["state"] == "timed_out"


def type_command(cluster: Learner, line: str) -> None:
    """The command that a line of the screen names to skip a wait, or to let a job go. It may come too late: no harm."""
    if named := re.search(r"To (?:skip them|let it go): gpucourse ([^;]+)", line):
        cluster.types(*named[1].split(), code=None)


def _kill_host(cluster: Learner) -> None:
    os.kill(json.loads((slurm.nodes_folder(cluster) / "host.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    until(lambda: not is_held(slurm.nodes_folder(cluster) / layout.LOCK), what="the host's end")


def _of(process: Path, workspace: str) -> bool:
    """Whether a process, that of the namespace among them, was started for this workspace."""
    try:
        return int(process.name) != os.getpid() and workspace.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_cluster_whose_host_is_gone_is_named_and_deploy_brings_it_back(cluster: Learner) -> None:
    _kill_host(cluster)
    stack = cluster.documents("status")["stacks"][0]
    assert all("has ended" in node["detail"] for node in stack["nodes"])
    cluster.types("deploy", "2")
    assert all(node["healthy"] for node in cluster.documents("status")["stacks"][0]["nodes"])
    assert slurm.on_head(cluster, "srun -N3 hostname | sort").split() == ["node1", "node2", "node3"]


def test_run_of_a_restarted_cluster_is_lost_and_claims_no_other_job(cluster: Learner, tmp_path: Path) -> None:
    own = slurm.script(tmp_path, "import time\ntime.sleep(600)\n")
    cluster.types(*slurm.OWN, own, "--detach")
    number = slurm.eventually(cluster, "RUNNING", "squeue -h -o '%i %T'").split()[0]
    _kill_host(cluster)
    cluster.types("deploy", "2")
    for _ in range(int(number) - 1):  # the new cluster counts from the beginning again
        slurm.on_head(cluster, "srun true")
    cluster.types(*slurm.OWN, own, "--detach")
    assert slurm.eventually(cluster, "RUNNING", "squeue -h -o '%i %T'").split()[0] == number
    first, second = cluster.documents("runs")["runs"][-2:]
    assert (first["state"], second["state"]) == ("lost", "running")
    assert first["diagnoses"][0]["symptom"] == "job-lost"
    cluster.types("cancel", first["id"], code=2)
    assert slurm.queue(cluster) == [f"{number} RUNNING"]
    cluster.types("cancel")


def test_destroy_leaves_nothing_after_kill_9_of_every_daemon_and_of_the_host(cluster: Learner) -> None:
    for name in ("node0", "node1", "node2"):
        for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
            slurm.inside(cluster, name, "pkill", "-KILL", "-x", daemon)
    said = " ".join(node["detail"] for node in cluster.documents("status")["stacks"][0]["nodes"])
    for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
        assert daemon in said
    _kill_host(cluster)
    cluster.types("destroy", "2", "--yes", "--discard")
    assert cluster.processes() == []  # and so no socket and no namespace of one
    for table in ("/proc/self/mounts", "/proc/net/unix"):
        assert str(cluster.workspace) not in Path(table).read_text(encoding="utf-8")
    assert [pid for pid in Path("/proc").glob("[0-9]*") if _of(pid, str(cluster.workspace))] == []
    nodes = slurm.nodes_folder(cluster)
    assert not nodes.exists() or not list(nodes.iterdir())
    assert cluster.documents("status")["stacks"] == []
