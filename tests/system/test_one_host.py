"""Slurm on a computer that refuses namespaces: `deploy 2` on the computer's own ports, as a learner uses it."""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpucourse.local import layout
from tests.forbidding import no_namespaces
from tests.system import slurm
from tests.system.cli import Learner
from tests.system.exercising import needs_torch
from tests.waiting import until

pytestmark = [pytest.mark.system, needs_torch]

OF_THE_SYSTEM = [
    Path(f"/{name}") for name in ("etc/slurm", "etc/munge", "var/lib/slurm", "var/log/slurm", "run/munge", "var/spool")
]
MISSING = "All nodes are this one computer: hostname, address and processes are the same on each"


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learner]:
    """Yield a learner with the lab of module 2, whose computer refuses namespaces."""
    slurm.need_slurm()
    with no_namespaces() as prefix:
        learner = Learner(tmp_path_factory.mktemp("one_host") / "workspace", before=prefix)
        with learner.leaves_nothing():
            if os.geteuid():  # in that namespace, the owner of /tmp has no name
                learner.workspace.mkdir()
                learner.types("trust", str(learner.workspace))
            learner.types("deploy", "2")
            yield learner


def _state_of_the_system() -> dict[str, tuple[int, ...]]:
    paths = [path for folder in OF_THE_SYSTEM for path in (folder, *folder.rglob("*")) if path.exists()]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


def _lab(learner: Learner) -> dict[str, Any]:
    return dict(learner.documents("status")["stacks"][0])


def _sleeps(pid: int) -> bool:
    try:
        return b"sleep" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def _daemon(learner: Learner, *words: str) -> int:
    """Return the process of this lab with this command line."""
    command = "\0".join((*words, "")).encode()
    lines = []
    for pid in learner.processes():
        with suppress(FileNotFoundError, ProcessLookupError):  # a process that has ended meanwhile is no daemon
            lines.append((pid, (Path("/proc") / str(pid) / "cmdline").read_bytes()))
    return next(pid for pid, line in lines if line == command)


@pytest.mark.slow
def test_lab_runs_and_says_what_is_missing_and_how_to_get_it(somebody: Learner) -> None:
    old_state = _state_of_the_system()
    deploy_output = " ".join(somebody.types("deploy", "2").out.split())
    assert MISSING in deploy_output
    assert "SLURMD_NODENAME" in deploy_output
    assert "sudo sysctl -w user.max_net_namespaces=10000; then gpucourse deploy 2" in deploy_output
    output = " ".join(somebody.types("status").out.split())
    assert MISSING in output
    assert "sudo sysctl -w user.max_net_namespaces=10000" in output
    assert all(node["healthy"] for node in _lab(somebody)["nodes"])
    # A batch job, because slurmctld would consider a job of srun running if it is killed before it has stored the job's end.
    inner = "srun sh -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES'"
    batch = f"sbatch --wait -N3 --gres=gpu:1 -o names.txt --wrap {shlex.quote(inner)} >/dev/null"
    names = slurm.on_head(somebody, f"{batch}; cat names.txt")
    assert sorted(names.splitlines()) == ["node1 0", "node2 0", "node3 0"]
    assert _state_of_the_system() == old_state


@pytest.mark.slow
def test_daemon_that_was_killed_is_named_and_restarted(somebody: Learner) -> None:
    os.kill(_daemon(somebody, "slurmctld", "-D"), signal.SIGKILL)
    os.kill(_daemon(somebody, "slurmd", "-D", "-N", "node2"), signal.SIGKILL)
    details = {node["node"]: node["detail"] for node in _lab(somebody)["nodes"] if not node["healthy"]}
    assert details["node0"].startswith("its slurmctld has ended")
    assert details["node2"] == "its slurmd has ended"
    assert sorted(details) == ["node0", "node2"]
    somebody.types("deploy", "2")
    assert all(node["healthy"] for node in _lab(somebody)["nodes"])
    idle_nodes = "sinfo -h -N -t idle -o %N"  # on a busy computer, they register later with the new slurmctld
    until(lambda: slurm.on_head(somebody, idle_nodes).split() == ["node1", "node2", "node3"], "all nodes are idle")


@pytest.mark.slow
def test_jobs_on_one_node_and_on_several_pass_what_can_be_measured(somebody: Learner) -> None:
    ran = somebody.types("run", "2.1", "--set", "seconds=0.2", "--set", "size=64")
    assert MISSING in " ".join(ran.err.split())
    assert "is COMPLETED on node" in ran.err
    assert somebody.newest_run()["verdict"] == "passed"
    ran = somebody.types("run", "2.3")
    verdicts = {
        check["id"]: check["verdict"] for check in json.loads((somebody.run_folder() / "verdict.json").read_text())["checks"]
    }
    assert verdicts.pop("distinct-hosts") == "not_measured"
    own_checks = "your-machines", "your-logs", "your-machine-checks"
    assert [verdicts.pop(name) for name in own_checks] == ["not_measured"] * 3, "the part is open"
    assert "host names could not differ" in " ".join(ran.out.split())
    assert set(verdicts.values()) == {"passed"}
    document = json.loads((somebody.run_folder() / "metrics.json").read_text())
    assert (document["hosts"], document["machines"], document["computers"]) == (2, None, 1)


@pytest.mark.slow
def test_destroy_leaves_nothing_if_the_host_was_killed_under_a_job(somebody: Learner) -> None:
    bare = "env -i sleep 600 & echo $! > ~/bare; sleep 600"  # a child without a mark
    slurm.on_head(somebody, f"sbatch --gres=gpu:1 -w node2 -o /dev/null --wrap {shlex.quote(bare)}")
    pid_file = slurm.nodes_folder(somebody) / "node2/home/bare"
    child = int(until(lambda: pid_file.exists() and pid_file.read_text(), subject="the job's start"))
    until(lambda: _sleeps(child), subject="the child's start")  # the shell prints its process id before it runs sleep
    sockets = layout.sockets(_lab(somebody)["deployment"]["uid"])
    assert sockets.is_dir()
    os.kill(json.loads((slurm.nodes_folder(somebody) / "host.json").read_text())["pid"], signal.SIGKILL)
    until(lambda: all("has ended" in node["detail"] for node in _lab(somebody)["nodes"]), subject="the host's end")
    assert somebody.processes() != []  # the job goes on
    somebody.types("destroy", "2", "--yes", "--discard")
    assert somebody.processes() == []
    assert not _sleeps(child)
    assert not sockets.exists()
    assert not slurm.nodes_folder(somebody).exists() or not list(slurm.nodes_folder(somebody).iterdir())
    assert str(sockets) not in Path("/proc/net/unix").read_text(encoding="utf-8")
    somebody.types("deploy", "2", "--nodes", "1")  # at once
    assert all(node["healthy"] for node in _lab(somebody)["nodes"])
