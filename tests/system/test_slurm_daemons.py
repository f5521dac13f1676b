"""Failures of Slurm's daemons and of the process that hosts a cluster: the screen says what happened and what to type, and that
works.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from gpucourse.local import layout
from gpucourse.workspace.lock import is_held
from tests.parts import need
from tests.system import slurm
from tests.system.cli import Learner
from tests.waiting import until

pytestmark = pytest.mark.system


def read_troubles(cluster: Learner) -> dict[str, str]:
    """Return what `status` reports about each unhealthy node."""
    nodes = cluster.documents("status")["stacks"][0]["nodes"]
    return {node["node"]: node["detail"] for node in nodes if not node["healthy"]}


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
    """Run a job on a healthy node in the meantime."""
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


def _kill_host(cluster: Learner) -> None:
    os.kill(json.loads((slurm.nodes_folder(cluster) / "host.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    until(lambda: not is_held(slurm.nodes_folder(cluster) / layout.LOCK), subject="the host's end")


def _of(process: Path, workspace: str) -> bool:
    """Return whether a process, such as that of the namespace, was started for this workspace."""
    try:
        return int(process.name) != os.getpid() and workspace.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_run_of_a_restarted_cluster_is_lost_and_claims_no_other_job(cluster: Learner, tmp_path: Path) -> None:
    script = slurm.script(tmp_path, "import time\ntime.sleep(600)\n")
    cluster.types(*slurm.OWN, script, "--detach")
    number = slurm.eventually(cluster, "RUNNING", "squeue -h -t RUNNING -o '%i %T'").split()[0]
    _kill_host(cluster)
    assert all("has ended" in detail for detail in read_troubles(cluster).values())
    assert len(read_troubles(cluster)) == 4
    cluster.types("deploy", "2")
    assert read_troubles(cluster) == {}
    for _ in range(int(number) - 1):  # the new cluster counts from the beginning again
        slurm.on_head(cluster, "srun true")
    cluster.types(*slurm.OWN, script, "--detach")
    assert slurm.eventually(cluster, "RUNNING", "squeue -h -t RUNNING -o '%i %T'").split()[0] == number
    first, second = cluster.documents("runs")["runs"][-2:]
    assert (first["state"], second["state"]) == ("lost", "running")
    assert first["diagnoses"][0]["symptom"] == "job-lost"
    cluster.types("cancel", first["id"], code=2)
    assert slurm.on_head(cluster, f"squeue -h -j {number} -o %T") == "RUNNING\n"
    cluster.types("cancel", "latest")


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
