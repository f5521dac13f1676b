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
from tests.parts import need
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


def read_troubles(cluster: Learner) -> dict[str, str]:
    """Return what `status` says of each node that is not healthy."""
    nodes = cluster.documents("status")["stacks"][0]["nodes"]
    return {node["node"]: node["detail"] for node in nodes if not node["healthy"]}


def restart_munged(setting: str = "") -> str:
    """Return the shell's words that end munged and start it, with one more variable, as its own user."""
    kill_command = "pkill -KILL -x munged; while pgrep -x munged; do :; done"
    return f"{kill_command}; {setting} setpriv --reuid munge --regid munge --clear-groups munged --force"


def test_machine_has_its_own_name_address_and_gpu_and_is_reached_through_the_head(cluster: Learner) -> None:
    output = slurm.on_head(cluster, "srun -N3 --gres=gpu:1 sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES' | sort")
    assert output.splitlines() == ["node1 0", "node2 0", "node3 0"]
    nodes = cluster.documents("status")["stacks"][0]["deployment"]["nodes"]
    assert [node["private_address"] for node in nodes[1:]] == ["10.77.0.11", "10.77.0.12", "10.77.0.13"]
    folder = slurm.nodes_folder(cluster).parent
    words = [need("ssh"), "-F", "ssh_config", "-J", "node0", "node2", "hostname; echo here > /shared/file"]
    assert subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout == "node2\n"
    assert slurm.on_head(cluster, "cat /shared/file") == "here\n"


def test_status_names_each_trouble_and_deploy_mends_them_all(cluster: Learner) -> None:
    """A job of a node that is well goes on meanwhile."""
    text = "until [ -e /shared/go ]; do sleep 0.1; done; echo whole"
    slurm.on_head(cluster, f"cd /shared && sbatch -w node3 --gres=gpu:1 -o whole.out --wrap '{text}'")
    slurm.eventually(cluster, "RUNNING", "squeue -h -o %T")
    slurm.inside(cluster, "node2", "touch", "/var/lib/kept")
    slurm.inside(cluster, "node1", "pkill", "-KILL", "-x", "slurmd")
    slurm.power_off(cluster, "node2")
    slurm.inside(cluster, "node0", "pkill", "-TERM", "-x", "slurmctld")
    until(lambda: {"node0", "node1", "node2"} <= read_troubles(cluster).keys(), "the troubles")
    troubles = read_troubles(cluster)
    assert troubles["node0"].startswith("its slurmctld has ended: Slurm accepts no commands; running jobs continue")
    assert (troubles["node1"], troubles["node2"]) == ("its slurmd has ended", "it is off")
    cluster.types("deploy", "2", "--quiet")
    assert read_troubles(cluster) == {}
    slurm.inside(cluster, "node0", "touch", "/shared/go")
    slurm.eventually(cluster, "whole", "cat /shared/whole.out")
    slurm.eventually(cluster, r"^3$", "sinfo -h -N -t idle -o %N | wc -l")
    slurm.inside(cluster, "node2", "test", "-e", "/var/lib/kept")


@pytest.mark.slow
def test_node_that_munge_or_slurm_refuses_is_named_with_the_meaning_and_mended(cluster: Learner) -> None:
    drain = ("nodename=node1", "state=drain", "reason=Duplicate jobid")  # what releases say that do not sort it out themselves
    slurm.inside(cluster, "node0", "scontrol", "update", *drain)
    slurm.inside(cluster, "node2", "sh", "-c", f"head -c 512 /dev/urandom > /etc/munge/munge.key; {restart_munged()}")
    source = "#include <time.h>\ntime_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s);"
    source += " s.tv_sec += 600; if (t) *t = s.tv_sec; return s.tv_sec; }\n"
    # munged runs as another user, who may not look into the folder that this user shares with the machines.
    library = slurm.nodes_folder(cluster) / "shared" / "ahead.so"
    words = [need("cc"), "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"]
    subprocess.run(words, input=source, text=True, check=True)
    slurm.inside(cluster, "node3", "install", "-m", "755", "/shared/ahead.so", "/tmp/ahead.so")
    slurm.inside(cluster, "node3", "sh", "-c", restart_munged("LD_PRELOAD=/tmp/ahead.so"))

    def are_named() -> bool:
        slurm.on_head(cluster, "timeout 3 srun -w node3 true", code=None)  # node3 must refuse what the head says
        troubles = read_troubles(cluster)
        other_key = "munge refuses: the machine's munge.key is not the head's"
        return troubles.get("node2") == other_key and "its clock" in troubles.get("node3", "")

    until(are_named, "the other key and the clock")
    assert "slurmctld was killed before it had stored a job" in read_troubles(cluster)["node1"]
    cluster.types("deploy", "2", "--quiet")
    assert read_troubles(cluster) == {}
    assert slurm.on_head(cluster, "srun -N3 hostname | sort").split() == ["node1", "node2", "node3"]


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
    """Yield a run that somebody follows, as soon as its job began."""
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


@pytest.mark.slow
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


def type_command(cluster: Learner, line: str) -> None:
    """Type the command that a line of the screen names to skip a wait, or to release a job. It may come too late: no harm."""
    if match := re.search(r"To (?:skip them|let it go): gpucourse ([^;]+)", line):
        cluster.types(*match[1].split(), code=None)


def _kill_host(cluster: Learner) -> None:
    os.kill(json.loads((slurm.nodes_folder(cluster) / "host.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    until(lambda: not is_held(slurm.nodes_folder(cluster) / layout.LOCK), subject="the host's end")


def _of(process: Path, workspace: str) -> bool:
    """Whether a process, that of the namespace among them, was started for this workspace."""
    try:
        return int(process.name) != os.getpid() and workspace.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_run_of_a_restarted_cluster_is_lost_and_claims_no_other_job(cluster: Learner, tmp_path: Path) -> None:
    script = slurm.script(tmp_path, "import time\ntime.sleep(600)\n")
    cluster.types(*slurm.OWN, script, "--detach")
    number = slurm.eventually(cluster, "RUNNING", "squeue -h -o '%i %T'").split()[0]
    _kill_host(cluster)
    assert all("has ended" in detail for detail in read_troubles(cluster).values())
    assert len(read_troubles(cluster)) == 4
    cluster.types("deploy", "2")
    assert read_troubles(cluster) == {}
    for _ in range(int(number) - 1):  # the new cluster counts from the beginning again
        slurm.on_head(cluster, "srun true")
    cluster.types(*slurm.OWN, script, "--detach")
    assert slurm.eventually(cluster, "RUNNING", "squeue -h -o '%i %T'").split()[0] == number
    first, second = cluster.documents("runs")["runs"][-2:]
    assert (first["state"], second["state"]) == ("lost", "running")
    assert first["diagnoses"][0]["symptom"] == "job-lost"
    cluster.types("cancel", first["id"], code=2)
    assert slurm.queue(cluster) == [f"{number} RUNNING"]
    cluster.types("cancel")


@pytest.mark.slow
def test_destroy_leaves_nothing_after_kill_9_of_every_daemon_and_of_the_host(cluster: Learner) -> None:
    for name in ("node0", "node1", "node2"):
        for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
            slurm.inside(cluster, name, "pkill", "-KILL", "-x", daemon)
    text = " ".join(read_troubles(cluster).values())
    for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
        assert daemon in text
    _kill_host(cluster)
    cluster.types("destroy", "2", "--yes", "--discard")
    assert cluster.processes() == []  # and so no socket and no namespace of one
    for table in ("/proc/self/mounts", "/proc/net/unix"):
        assert str(cluster.workspace) not in Path(table).read_text(encoding="utf-8")
    assert [pid for pid in Path("/proc").glob("[0-9]*") if _of(pid, str(cluster.workspace))] == []
    nodes = slurm.nodes_folder(cluster)
    assert not nodes.exists() or not list(nodes.iterdir())
    assert cluster.documents("status")["stacks"] == []
