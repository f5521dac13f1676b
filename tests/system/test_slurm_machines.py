"""A real Slurm on simulated machines: it stands, what dies is named and mended, nothing is left. One cluster's life."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import health
from gpucourse.local.machines import network
from gpucourse.local.machines.requirements import Lacking, require
from tests.simulated import SimulatedNodes, eventually, make_key

pytestmark = pytest.mark.system

NAMES = [f"node{index}" for index in range(3)]
MODULE = Path(__file__).resolve().parents[2] / "terraform" / "modules" / "slurm"


class Cluster(SimulatedNodes):
    """A head and two nodes, with the files that the Terraform module would render."""

    def spec(self, name: str) -> dict[str, object]:  # type: ignore[override]
        return {
            **super().spec(name),
            "gpus": 0 if name == "node0" else 1,
            "addresses": {each: network.address(index) for index, each in enumerate(NAMES)},
            "slurm": _files(),
        }

    def inside(self, name: str, *argv: str) -> dict[str, object]:
        """Run a command on a machine as its root, past SSH."""
        return health.ask_host(self.folder, "run", {"name": name, "argv": list(argv)}, timeout_s=30.0)

    def power(self, name: str, way: str) -> None:
        """Cut a machine's power, or give it back."""
        health.ask_host(self.folder, "power", {"name": name, "way": way}, timeout_s=30.0)

    def said(self, command: str) -> str:
        """What a command says on the head, over SSH."""
        return self.ssh("node0", command).stdout.decode().strip()

    def states(self) -> dict[str, str]:
        """What is wrong, by node; empty where all is well."""
        return {one.node: one.detail for one in health.inspect(self.folder, NAMES) if not one.healthy}

    def idle(self) -> bool:
        """Whether both nodes wait for work with their GPU."""
        return self.said("sinfo -h -N -o '%N|%T|%G'").splitlines() == ["node1|idle|gpu:1", "node2|idle|gpu:1"]


def _files() -> dict[str, str]:
    """The template with the values that the stack gives it."""
    text = (MODULE / "slurm.conf.tftpl").read_text(encoding="utf-8")
    workers = [
        f"NodeName={name} NodeAddr={network.address(index)} CPUs=4 RealMemory=2000 Gres=gpu:1 State=UNKNOWN"
        for index, name in enumerate(NAMES)
        if index
    ]
    values = {
        "${head.name}": "node0",
        "${head.address}": network.address(0),
        "${names}": "node[1-2]",
        "${workers}": "\n".join(workers),
        "${patience_s}": "15",
    }
    for mark, value in values.items():
        text = text.replace(mark, value)
    files = {name: (MODULE / name).read_text(encoding="utf-8") for name in ("gres.conf", "cgroup.conf")}
    return {"slurm.conf": text, **files, "mpi.conf": "", "plugstack.conf": ""}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        require(slurm=True)
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    folder = tmp_path_factory.mktemp("slurm")
    lab = Cluster(folder=folder / "nodes", key=make_key(folder / "id_ed25519"), uid="test-slurm-machines")
    try:
        for name in NAMES:
            lab.up(name)
        eventually("idle", lab.idle)
        yield lab
    finally:
        health.end_everything(lab.folder, lab.uid)
    assert lab.leftovers() == []
    assert not list(lab.folder.iterdir())
    assert str(lab.folder) not in Path("/proc/mounts").read_text(encoding="utf-8")


def test_each_machine_is_its_own(cluster: Cluster) -> None:
    assert cluster.said("srun -N2 --gres=gpu:1 sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES' | sort") == "node1 0\nnode2 0"
    assert cluster.node("node1").private_address == "10.77.0.11"
    cluster.ssh("node1", "echo here > /shared/file")
    assert cluster.said("cat /shared/file") == "here"
    assert cluster.states() == {}


def test_who_waits_is_told_the_true_reason(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.said("cd /shared && sbatch --gres=gpu:1 --wrap 'sleep 60'")
    eventually("Resources", lambda: "Resources" in cluster.said("squeue -h -t PD -o %r"))
    cluster.said("scancel --user $(id -un)")
    eventually("idle", cluster.idle)


def test_a_killed_slurmctld_is_named_and_comes_back_and_jobs_go_on(cluster: Cluster) -> None:
    job = cluster.said("cd /shared && sbatch --parsable --gres=gpu:1 --wrap 'sleep 8; echo whole' -o whole.out")
    eventually("running", lambda: cluster.said(f"squeue -h -j {job} -o %T") == "RUNNING")
    cluster.inside("node0", "pkill", "-TERM", "-x", "slurmctld")
    eventually("named", lambda: "slurmctld" in cluster.states().get("node0", ""))
    cluster.up("node0")
    assert cluster.states().get("node0") is None
    eventually("whole", lambda: cluster.said("cat /shared/whole.out") == "whole")


def test_a_killed_slurmd_is_named_and_comes_back(cluster: Cluster) -> None:
    cluster.inside("node1", "pkill", "-KILL", "-x", "slurmd")
    eventually("named", lambda: cluster.states() == {"node1": "slurmd of it ended"})
    cluster.up("node1")
    eventually("idle", cluster.idle)


def test_a_machine_without_power_is_named_and_boots_again_with_its_disk(cluster: Cluster) -> None:
    cluster.inside("node2", "touch", "/var/lib/kept")
    cluster.power("node2", "off")
    eventually("named", lambda: cluster.states() == {"node2": "it is off"})
    cluster.up("node2")
    assert cluster.inside("node2", "test", "-e", "/var/lib/kept")["code"] == 0
    eventually("idle", cluster.idle)


def test_another_munge_key_is_named_and_mended(cluster: Cluster) -> None:
    new_key = "head -c 512 /dev/urandom > /etc/munge/munge.key; pkill -x munged; sleep 0.3"
    cluster.inside("node1", "sh", "-c", f"{new_key}; setpriv --reuid munge --regid munge --clear-groups munged")
    cluster.ssh("node1", "sinfo")
    named = health.ask_host(cluster.folder, "logs", {}, timeout_s=30.0)
    assert "munge" in f"{named.get('node0')} {named.get('node1')}"
    cluster.up("node1")
    eventually("idle", cluster.idle)


def test_a_killed_host_takes_everything_with_it_and_a_new_one_starts_anew(cluster: Cluster) -> None:
    os.kill(cluster.host_pid, signal.SIGKILL)
    eventually("ended", lambda: all("has ended" in what for what in cluster.states().values()) and len(cluster.states()) == 3)
    for name in NAMES:
        cluster.up(name)
    eventually("idle", cluster.idle)
