"""A Slurm cluster that lost its host, as after a reboot, and one whose daemons were killed: named, healed, removed whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import health, layout
from gpucourse.workspace.lock import is_held
from tests.system import slurm
from tests.system.cli import Learner
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Somebody whose cluster is harmed, in turn, by each test."""
    learner = Learner(tmp_path_factory.mktemp("harmed") / "workspace")
    with learner.leaves_nothing():
        slurm.stand_up(learner)
        yield learner


def _nodes(somebody: Learner) -> Path:
    return somebody.workspace / ".gpucourse" / "stacks" / "02-local" / "nodes"


def _kill_host(somebody: Learner) -> None:
    os.kill(json.loads((_nodes(somebody) / "host.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
    until(lambda: not is_held(_nodes(somebody) / layout.LOCK), what="the host's end")


def _destroy_leaves_nothing(somebody: Learner) -> None:
    """No process (and so no socket and no namespace of one), no mount, no folder."""
    somebody.types("destroy", "2", "--yes", "--discard")
    assert somebody.processes() == []
    for table in ("/proc/self/mounts", "/proc/net/unix"):
        assert str(somebody.workspace) not in Path(table).read_text(encoding="utf-8")
    assert [pid for pid in Path("/proc").glob("[0-9]*") if _of(pid, str(somebody.workspace))] == []
    assert not _nodes(somebody).exists() or not list(_nodes(somebody).iterdir())
    assert somebody.documents("status")["stacks"] == []


def _of(process: Path, workspace: str) -> bool:
    """Whether a process, that of the namespace among them, was started for this workspace."""
    try:
        return int(process.name) != os.getpid() and workspace.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


def test_a_cluster_whose_host_is_gone_is_named_and_deploy_brings_it_back(somebody: Learner) -> None:
    _kill_host(somebody)
    stack = somebody.documents("status")["stacks"][0]
    assert all("has ended" in node["detail"] for node in stack["nodes"])
    somebody.types("deploy", "2")
    assert all(node["healthy"] for node in somebody.documents("status")["stacks"][0]["nodes"])
    assert slurm.on_head(somebody, "srun -N3 hostname | sort").split() == ["node1", "node2", "node3"]


@pytest.mark.slow
def test_a_run_of_a_restarted_cluster_is_lost_and_claims_no_other_job(somebody: Learner, tmp_path: Path) -> None:
    own = slurm.script(tmp_path, "import time\ntime.sleep(600)\n")
    somebody.types(*slurm.OWN, own, "--detach")
    number = slurm.eventually(somebody, "RUNNING", "squeue -h -o '%i %T'").split()[0]
    _kill_host(somebody)
    somebody.types("deploy", "2")
    for _ in range(int(number) - 1):  # the new cluster counts from the beginning again
        slurm.on_head(somebody, "srun true")
    somebody.types(*slurm.OWN, own, "--detach")
    assert slurm.eventually(somebody, "RUNNING", "squeue -h -o '%i %T'").split()[0] == number
    first, second = somebody.documents("runs")["runs"]
    assert (first["state"], second["state"]) == ("lost", "running")
    assert first["diagnoses"][0]["symptom"] == "job-lost"
    somebody.types("cancel", first["id"], code=2)
    assert slurm.queue(somebody) == [f"{number} RUNNING"]
    somebody.types("cancel")


def test_destroy_after_kill_9_of_every_daemon(somebody: Learner) -> None:
    for name in ("node0", "node1", "node2"):
        for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
            argv = ["pkill", "-KILL", "-x", daemon]
            health.ask_host(_nodes(somebody), "run", {"name": name, "argv": argv}, timeout_s=STUCK_S)
    said = " ".join(node["detail"] for node in somebody.documents("status")["stacks"][0]["nodes"])
    for daemon in ("munged", "slurmctld", "slurmd", "sshd"):
        assert daemon in said
    _destroy_leaves_nothing(somebody)


def test_a_new_cluster_at_once_and_destroy_after_kill_9_of_its_host(somebody: Learner) -> None:
    somebody.types("deploy", "2", "--nodes", "1")
    _kill_host(somebody)
    _destroy_leaves_nothing(somebody)
