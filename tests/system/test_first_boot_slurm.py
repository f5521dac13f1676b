"""Slurm at the first boot of a head and of a GPU node, each in its own folder. They share one folder, as on AWS."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.system.first_boot import Boot, render
from tests.waiting import STUCK_S

pytestmark = pytest.mark.system

STACK = "w1-0123456789ab"
IDLE = 'echo "idle gpu:1 none"'


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the script of each kind of node."""
    nodes: dict[str, dict[str, object]] = {
        "head": {"gpus": 0, "shared_address": "10.77.1.20"},
        "worker": {"name": "node1", "role": "worker", "shared_address": "10.77.1.20"},
    }
    output = render(tmp_path_factory.mktemp("rendered"), [(name, "slurm") for name in nodes], **nodes)
    return {node: text for (node, _), text in output.items()}


class Cluster:
    """Machines that share a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shared = folder, folder / "shared"
        self.shared.mkdir()

    @property
    def directory(self) -> Path:
        return self.shared / ".gpucourse" / STACK

    def node(self, name: str, address: str, *, sinfo: str = IDLE) -> Boot:
        boot = Boot(self.folder / name)
        (boot.root / "shared").symlink_to(self.shared)
        (boot.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        for program, body in {
            "hostname": f"echo {address} fe80::1",
            "hostnamectl": "",
            "scontrol": "echo Slurmctld is UP",
            "sinfo": sinfo,
        }.items():
            boot.stand_in(program, body)
        return boot

    def write_node_line(self, name: str, address: str, *, key: str = "none", gpus: int = 1) -> None:
        """Write another node's report on itself."""
        (self.directory / "nodes").mkdir(parents=True, exist_ok=True)
        line = f"NodeName={name} NodeAddr={address} CPUs=4 RealMemory=15000 Gres=gpu:{gpus} State=UNKNOWN"
        (self.directory / "nodes" / name).write_text(f"{address} {key}\n{line}\n")

    def leave_head_files(self, key: bytes = b"k" * 1024) -> None:
        """Write what a head has left for a node that comes later."""
        (self.directory / "keys").mkdir(parents=True)
        (self.directory / "keys/munge.key").write_bytes(key)
        (self.directory / "hosts").write_text("10.77.1.10 node0 # gpucourse\n10.77.1.11 node1 # gpucourse\n")
        (self.directory / "slurm.conf").write_text("SlurmctldHost=node0(10.77.1.10)\n")


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def look(boot: Boot) -> None:
    """Do once what the service does every few seconds."""
    text = (boot.root / "opt/gpucourse/stack-setup.sh").read_text()
    program = boot.root / "look.sh"
    program.write_text(f"set -u; root={boot.root}\n" + text.replace("while slurm_look; do sleep 5; done", "slurm_look; exit"))
    facts = dict(line.split("=", 1) for line in (boot.root / "etc/gpucourse/node.env").read_text().splitlines())
    boot.stand_in("mountpoint")
    environment = {**facts, "PATH": f"{boot.root}/bin:/usr/bin:/bin"}
    result = subprocess.run(
        ["bash", str(program)], env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False
    )
    assert result.stderr == ""


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_head_makes_key_and_configuration_before_it_starts_anything(cluster: Cluster, scripts: dict[str, str]) -> None:
    cluster.write_node_line("node1", "10.77.1.11")
    cluster.write_node_line("node2", "10.77.1.12", gpus=4)
    head = cluster.node("head", "10.77.1.10")
    head.stand_in("apt-get", f'[ ! -x "{head.root}/usr/sbin/policy-rc.d" ] || echo held >>"{head.root}/done"')
    assert head.run(scripts["head"]) == 0, head.log()
    text = (head.root / "etc/slurm/slurm.conf").read_text()
    assert text == (cluster.directory / "slurm.conf").read_text()
    assert "SlurmctldHost=node0(10.77.1.10)\n" in text
    assert "NodeName=node2 NodeAddr=10.77.1.12 CPUs=4 RealMemory=15000 Gres=gpu:4 State=UNKNOWN\n" in text
    assert text.endswith("PartitionName=gpu Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP\n")
    assert "@" not in text
    key = head.root / "etc/munge/munge.key"
    assert (len(key.read_bytes()), mode(key)) == (1024, 0o400)
    shared = cluster.directory / "keys/munge.key"
    assert shared.read_bytes() == key.read_bytes()
    assert (mode(shared), mode(shared.parent)) == (0o600, 0o700)
    assert {path.name for path in cluster.directory.rglob("*.new")} == set()
    assert (head.root / "etc/hosts").read_text().splitlines() == [
        "127.0.0.1 localhost",
        "10.77.1.10 node0 # gpucourse",
        "10.77.1.11 node1 # gpucourse",
        "10.77.1.12 node2 # gpucourse",
    ]
    assert not (head.root / "usr/sbin/policy-rc.d").exists()
    calls = [
        "hostnamectl set-hostname node0",
        "held",
        "systemctl enable munge slurmctld",
        "systemctl restart munge",
        "systemctl restart slurmctld",
        "scontrol ping",
        "systemctl enable --now gpucourse-slurm.service",
    ]
    assert list(dict.fromkeys(call for call in head.commands_run if call in calls)) == calls
    assert any("slurmctld slurm-client munge libpmix2t64" in call for call in head.commands_run)
    assert "slurmd" not in " ".join(call for call in head.commands_run if call.startswith("systemctl"))


def test_gpu_node_takes_the_key_keeps_its_name_and_counts_its_gpus(cluster: Cluster, scripts: dict[str, str]) -> None:
    cluster.leave_head_files()
    node = cluster.node("worker", "10.77.1.11")
    assert node.run(scripts["worker"]) == 0, node.log()
    assert "hostnamectl set-hostname node1" in node.commands_run
    assert (node.root / "etc/cloud/cloud.cfg.d/99-gpucourse.cfg").read_text() == "preserve_hostname: true\n"
    key = node.root / "etc/munge/munge.key"
    assert (key.read_bytes(), mode(key)) == (b"k" * 1024, 0o400)
    first, line = (cluster.directory / "nodes/node1").read_text().splitlines()
    assert first == f"10.77.1.11 {hashlib.sha256(b'k' * 1024).hexdigest()}"
    assert line.startswith(f"NodeName=node1 NodeAddr=10.77.1.11 CPUs={os.cpu_count()} RealMemory=")
    assert line.endswith(" Gres=gpu:1 State=UNKNOWN")
    assert (node.root / "etc/slurm/gres.conf").read_text() == "Name=gpu File=/dev/nvidia0\n"
    assert (node.root / "etc/slurm/mpi.conf").read_text() == ""
    assert (node.root / "etc/slurm/slurm.conf").read_text() == "SlurmctldHost=node0(10.77.1.10)\n"
    order = [
        "nvidia-smi --list-gpus",
        "systemctl restart munge",
        "systemctl restart slurmd",
        "sinfo -h -N -n node1 -o %T %G %E",
    ]
    assert list(dict.fromkeys(call for call in node.commands_run if call in order)) == order
    assert (
        "ExecStartPre=/usr/bin/nvidia-smi -L" in (node.root / "etc/systemd/system/slurmd.service.d/gpucourse.conf").read_text()
    )


@pytest.mark.slow
def test_key_leaves_the_shared_folder_once_every_node_has_it(cluster: Cluster, scripts: dict[str, str]) -> None:
    cluster.write_node_line("node1", "10.77.1.11")
    head = cluster.node("head", "10.77.1.10")
    assert head.run(scripts["head"]) == 0, head.log()
    node = cluster.node("worker", "10.77.1.11")
    assert node.run(scripts["worker"]) == 0, node.log()
    assert (cluster.directory / "keys/munge.key").exists()
    look(head)
    assert list((cluster.directory / "keys").iterdir()) == []
    restart_count = head.commands_run.count("systemctl restart slurmctld")
    look(head)
    assert head.commands_run.count("systemctl restart slurmctld") == restart_count, (
        "a look at a cluster that is as it was changes nothing"
    )


def test_node_follows_a_replaced_head(cluster: Cluster, scripts: dict[str, str]) -> None:
    cluster.leave_head_files()
    node = cluster.node("worker", "10.77.1.11")
    assert node.run(scripts["worker"]) == 0, node.log()
    look(node)
    assert node.commands_run.count("systemctl restart slurmd") == 1
    head = cluster.node("another", "10.77.1.99")
    assert head.run(scripts["head"]) == 0, head.log()
    look(node)
    assert (node.root / "etc/munge/munge.key").read_bytes() == (head.root / "etc/munge/munge.key").read_bytes() != b"k" * 1024
    assert "SlurmctldHost=node0(10.77.1.99)" in (node.root / "etc/slurm/slurm.conf").read_text()
    assert "10.77.1.99 node0 # gpucourse" in (node.root / "etc/hosts").read_text()
    assert node.commands_run.count("systemctl restart slurmd") == 2


@pytest.mark.slow
def test_failure_shows_the_reason_of_slurm_if_it_does_not_take_the_node(cluster: Cluster, scripts: dict[str, str]) -> None:
    cluster.leave_head_files()
    node = cluster.node(
        "worker", "10.77.1.11", sinfo='echo "drained gpu:1 gres/gpu count reported lower than configured (0 < 1)"'
    )
    assert node.run(scripts["worker"]) == 1
    report = (node.state / "failed").read_text()
    assert report.startswith("step 'slurm: daemon' failed")
    assert "Slurm has node1 as: drained gpu:1 gres/gpu count reported lower" in report
    assert "systemctl status --no-pager slurmd" in node.commands_run
    assert not (node.state / "ready").exists()
