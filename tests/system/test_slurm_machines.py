"""A real Slurm on simulated machines: it stands, what dies is named and mended, nothing is left. One cluster's life."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import health
from gpucourse.local.machines.requirements import Lacking, require
from tests.simulated import make_key
from tests.slurm_cluster import Cluster
from tests.waiting import until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        require(slurm=True)
    except Lacking as error:
        pytest.skip(f"{error}: {error.remedy}")
    folder = tmp_path_factory.mktemp("slurm")
    lab = Cluster(folder=folder / "nodes", key=make_key(folder / "id_ed25519"), uid=f"test-{uuid.uuid4().hex[:12]}")
    try:
        for name in lab.names:
            lab.up(name)
        until(lab.idle, "idle")
        yield lab
    finally:
        health.end_everything(lab.folder, lab.uid)
    assert lab.leftovers() == []
    assert not list(lab.folder.iterdir())
    assert str(lab.folder) not in Path("/proc/mounts").read_text(encoding="utf-8")


def test_machine_has_its_own_name_address_and_gpu(cluster: Cluster) -> None:
    assert (
        cluster.run_on_head("srun -N2 --gres=gpu:1 sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES' | sort") == "node1 0\nnode2 0"
    )
    assert cluster.node("node1").private_address == "10.77.0.11"
    cluster.ssh("node1", "echo here > /shared/file")
    assert cluster.run_on_head("cat /shared/file") == "here"
    assert cluster.states() == {}


def test_machine_is_reached_through_the_head(cluster: Cluster) -> None:
    """As `ssh -J node0 node2` reaches it, also after the head was mended."""
    for _ in range(2):
        jump = shlex.join(["ssh", *cluster.options("node0"), "-W", "[%h]:%p", cluster.address("node0")])
        done = cluster.ssh("node2", "hostname", more=["-o", f"ProxyCommand={jump}"])
        assert (done.stdout, done.returncode) == (b"node2\n", 0), done.stderr
        cluster.up("node0")


def test_waiting_job_has_the_true_reason(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.run_on_head("cd /shared && sbatch --gres=gpu:1 --wrap 'sleep 600'")
    until(lambda: "Resources" in cluster.run_on_head("squeue -h -t PD -o %r"), "Resources")
    cluster.run_on_head("scancel --user $(id -un)")
    until(cluster.idle, "idle")


def test_job_goes_on_while_slurmctld_is_named_and_comes_back(cluster: Cluster) -> None:
    text = "until [ -e whole.go ]; do sleep 0.1; done; echo whole"
    job = cluster.run_on_head(f"cd /shared && sbatch --parsable --gres=gpu:1 --wrap '{text}' -o whole.out")
    until(lambda: cluster.run_on_head(f"squeue -h -j {job} -o %T") == "RUNNING", "running")
    cluster.inside("node0", "pkill", "-TERM", "-x", "slurmctld")
    until(lambda: "slurmctld" in cluster.states().get("node0", ""), "named")
    cluster.up("node0")
    assert cluster.states().get("node0") is None
    cluster.run_on_head("touch /shared/whole.go")
    until(lambda: cluster.run_on_head("cat /shared/whole.out") == "whole", "whole")


@pytest.mark.parametrize(
    ("node", "daemon", "name"), [("node1", "slurmd", "slurmd of it ended"), ("node2", "", "it is off")], ids=["killed", "off"]
)
def test_node_that_does_not_serve_is_named_and_comes_back_with_its_disk(
    cluster: Cluster, node: str, daemon: str, name: str
) -> None:
    cluster.inside(node, "touch", "/var/lib/kept")
    if daemon:
        cluster.inside(node, "pkill", "-KILL", "-x", daemon)
    else:
        cluster.power(node, "off")
    until(lambda: cluster.states() == {node: name}, "named")
    cluster.up(node)
    assert cluster.inside(node, "test", "-e", "/var/lib/kept")["code"] == 0
    until(cluster.idle, "idle")


def test_drained_node_is_named_with_its_meaning_and_repaired(cluster: Cluster) -> None:
    # What versions that do not sort it out themselves say of the node that still runs such a job.
    cluster.inside("node0", "scontrol", "update", "nodename=node1", "state=drain", "reason=Duplicate jobid")
    said = cluster.states()["node1"]
    assert "drained" in said
    assert "slurmctld was killed before it had stored a job" in said
    cluster.up("node1")
    until(cluster.idle, "idle")


def test_other_munge_key_is_named_and_mended(cluster: Cluster) -> None:
    new_key = "head -c 512 /dev/urandom > /etc/munge/munge.key"
    cluster.inside("node1", "sh", "-c", f"{new_key}; {_again('munged')}")
    refused = "munge refuses: the machine has another munge.key than the head"
    until(lambda: cluster.states().get("node1") == refused, "named")
    cluster.up("node1")
    until(lambda: cluster.states() == {}, "mended")
    until(cluster.idle, "idle")


def test_clock_that_is_ahead_is_named_and_mended(cluster: Cluster) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: one daemon's clock cannot be set ahead without it")
    ahead = cluster.folder / "shared" / "ahead.so"
    source = "#include <time.h>\ntime_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s);"
    source += " s.tv_sec += 600; if (t) *t = s.tv_sec; return s.tv_sec; }\n"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", str(ahead), "-"], input=source, text=True, check=True)
    # munged runs as another user, who may not look into the folder that this user shares with the machines.
    cluster.inside("node1", "install", "-m", "755", "/shared/ahead.so", "/tmp/ahead.so")
    cluster.inside("node1", "sh", "-c", _again("munged", "LD_PRELOAD=/tmp/ahead.so"))
    assert "node1" not in cluster.ssh("node1", "sinfo -h -N -o %N").stdout.decode()
    until(lambda: "its clock" in cluster.states().get("node1", "") or _provoke_refusal(cluster), "named")
    cluster.up("node1")
    until(lambda: cluster.states() == {}, "mended")
    # Head and node take each other's word.
    until(lambda: "node1" in cluster.ssh("node1", "sinfo -h -N -o %N").stdout.decode(), "answered")


def _provoke_refusal(cluster: Cluster) -> bool:
    """Have the head say something to node1, which must refuse it; never true."""
    cluster.run_on_head("timeout 3 srun -w node1 true")
    return False


def _again(daemon: str, setting: str = "") -> str:
    """The shell's words that end a daemon and start it, with one more variable, as its own user."""
    ended = f"pkill -KILL -x {daemon}; while pgrep -x {daemon}; do :; done"
    return f"{ended}; {setting} setpriv --reuid munge --regid munge --clear-groups {daemon} --force"
