"""A real Slurm on simulated machines: it stands, what dies is named and mended, nothing is left. One cluster's life."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucourse.local import health
from gpucourse.local.machines.requirements import Lacking, require
from tests.simulated import make_key
from tests.slurm_cluster import Cluster
from tests.waiting import STUCK_S, until

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


def test_each_machine_is_its_own(cluster: Cluster) -> None:
    assert (
        cluster.run_on_head("srun -N2 --gres=gpu:1 sh -c 'echo $(hostname) $CUDA_VISIBLE_DEVICES' | sort") == "node1 0\nnode2 0"
    )
    assert cluster.node("node1").private_address == "10.77.0.11"
    cluster.ssh("node1", "echo here > /shared/file")
    assert cluster.run_on_head("cat /shared/file") == "here"
    assert cluster.states() == {}


def test_a_machine_is_reached_through_the_head(cluster: Cluster) -> None:
    """As `ssh -J node0 node2` reaches it, also after the head was mended."""
    for _ in range(2):
        jump = shlex.join(["ssh", *cluster.options("node0"), "-W", "[%h]:%p", cluster.address("node0")])
        done = cluster.ssh("node2", "hostname", more=["-o", f"ProxyCommand={jump}"])
        assert (done.stdout, done.returncode) == (b"node2\n", 0), done.stderr
        cluster.up("node0")


def test_no_agent_is_taken_along(cluster: Cluster) -> None:
    """As on nodes that are no machines."""
    assert not cluster.takes_agent("node0")


def test_who_waits_is_told_the_true_reason(cluster: Cluster) -> None:
    for _ in range(3):
        cluster.run_on_head("cd /shared && sbatch --gres=gpu:1 --wrap 'sleep 600'")
    until(lambda: "Resources" in cluster.run_on_head("squeue -h -t PD -o %r"), "Resources")
    cluster.run_on_head("scancel --user $(id -un)")
    until(cluster.idle, "idle")


def test_a_killed_slurmctld_is_named_and_comes_back_and_jobs_go_on(cluster: Cluster) -> None:
    text = "until [ -e whole.go ]; do sleep 0.1; done; echo whole"
    job = cluster.run_on_head(f"cd /shared && sbatch --parsable --gres=gpu:1 --wrap '{text}' -o whole.out")
    until(lambda: cluster.run_on_head(f"squeue -h -j {job} -o %T") == "RUNNING", "running")
    cluster.inside("node0", "pkill", "-TERM", "-x", "slurmctld")
    until(lambda: "slurmctld" in cluster.states().get("node0", ""), "named")
    cluster.up("node0")
    assert cluster.states().get("node0") is None
    cluster.run_on_head("touch /shared/whole.go")
    until(lambda: cluster.run_on_head("cat /shared/whole.out") == "whole", "whole")


def test_a_killed_slurmd_is_named_and_comes_back(cluster: Cluster) -> None:
    cluster.inside("node1", "pkill", "-KILL", "-x", "slurmd")
    until(lambda: cluster.states() == {"node1": "slurmd of it ended"}, "named")
    cluster.up("node1")
    until(cluster.idle, "idle")


def test_a_machine_without_power_is_named_and_boots_again_with_its_disk(cluster: Cluster) -> None:
    cluster.inside("node2", "touch", "/var/lib/kept")
    cluster.power("node2", "off")
    until(lambda: cluster.states() == {"node2": "it is off"}, "named")
    cluster.up("node2")
    assert cluster.inside("node2", "test", "-e", "/var/lib/kept")["code"] == 0
    until(cluster.idle, "idle")


@pytest.mark.slow
def test_a_slurmctld_killed_early_restarts_the_job_or_names_the_loss(cluster: Cluster) -> None:
    text = "[ -e early.seen ] || { touch early.seen; sleep 20; }; echo whole"
    job = cluster.run_on_head(f"cd /shared && sbatch --parsable --gres=gpu:1 --open-mode=append -o early.out --wrap '{text}'")
    until(lambda: cluster.run_on_head(f"squeue -h -j {job} -o %T") == "RUNNING", "running")
    until(lambda: "early.seen" in cluster.run_on_head("ls /shared"), "begun")
    cluster.inside("node0", "pkill", "-KILL", "-x", "slurmctld")
    until(lambda: "one just submitted may restart or be lost" in cluster.states().get("node0", ""), "named")
    cluster.up("node0")
    # Whether Slurm had stored the job by then is a matter of milliseconds.
    until(lambda: _skipping_the_wait(cluster) and (_is_whole(cluster) or _is_lost(cluster)), "out of the queue")
    _mend(cluster)  # where Slurm held it back, or drained its node


def test_a_drained_node_is_named_with_its_meaning_and_repaired(cluster: Cluster) -> None:
    # What versions that do not sort it out themselves say of the node that still runs such a job.
    cluster.inside("node0", "scontrol", "update", "nodename=node1", "state=drain", "reason=Duplicate jobid")
    said = cluster.states()["node1"]
    assert "drained" in said
    assert "slurmctld was killed before it had stored a job" in said
    _mend(cluster)


@pytest.mark.slow
def test_a_job_on_a_dead_slurmd_is_requeued_and_its_wait_can_be_skipped(cluster: Cluster) -> None:
    text = 'echo restarts=$SLURM_RESTART_COUNT; [ -n "$SLURM_RESTART_COUNT" ] || sleep 60'
    cluster.ssh("node0", f"cd /shared && sbatch -w node1 --gres=gpu:1 --open-mode=append -o dead.out --wrap '{text}'")
    until(lambda: cluster.run_on_head("squeue -h -o %T") == "RUNNING", "running")
    cluster.inside("node1", "pkill", "-KILL", "-x", "slurmd")
    until(lambda: cluster.states().get("node1") == "slurmd of it ended", "named")
    # By itself Slurm comes to this after SlurmdTimeout and a round of its questions, half a minute.
    cluster.inside("node0", "scontrol", "update", "nodename=node1", "state=down", "reason=Not responding")
    until(lambda: cluster.run_on_head("squeue -h -o '%T %r'") == "PENDING BeginTime", "BeginTime")
    _mend(cluster, busy=True)
    assert cluster.run_on_head("squeue -h -o '%T %r'") == "PENDING BeginTime"
    # Slurm ends what is left of the first start. A second one before that is refused: Duplicate jobid.
    until(lambda: cluster.inside("node1", "pgrep", "-x", "slurmstepd")["output"] == "", "ended")
    # One in the very second of that end is refused as well: Slurm counts it by whole seconds as killed already.
    ended = cluster.run_on_head("date +%s")
    until(lambda: cluster.run_on_head("date +%s") > ended, "a later second")
    # And one that came too early after all waits again.
    until(lambda: _skipping_the_wait(cluster), "out of the queue")
    words = [cluster.run_on_head(command) for command in ("cat /shared/dead.out", "scontrol show job")]
    assert re.search(r"restarts=\d", words[0]), "\n".join(words)
    until(cluster.idle, "idle")


def test_another_munge_key_is_named_and_mended(cluster: Cluster) -> None:
    new_key = "head -c 512 /dev/urandom > /etc/munge/munge.key"
    cluster.inside("node1", "sh", "-c", f"{new_key}; {_again('munged')}")
    refused = "munge refuses: the machine has another munge.key than the head"
    until(lambda: cluster.states().get("node1") == refused, "named")
    cluster.up("node1")
    until(lambda: cluster.states() == {}, "mended")
    until(cluster.idle, "idle")


def test_a_clock_that_is_ahead_is_named_and_mended(cluster: Cluster) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler: one daemon's clock cannot be set ahead without it")
    ahead = cluster.folder / "shared" / "ahead.so"
    source = "#include <time.h>\ntime_t time(time_t *t) { struct timespec s; clock_gettime(CLOCK_REALTIME, &s);"
    source += " s.tv_sec += 600; if (t) *t = s.tv_sec; return s.tv_sec; }\n"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", str(ahead), "-"], input=source, text=True, check=True)
    ahead.chmod(0o755)  # munged runs as another user, who has to read it
    cluster.inside("node1", "sh", "-c", _again("munged", "LD_PRELOAD=/shared/ahead.so"))
    assert "node1" not in cluster.ssh("node1", "sinfo -h -N -o %N").stdout.decode()
    until(lambda: "its clock" in cluster.states().get("node1", "") or _provoke_refusal(cluster), "named")
    cluster.up("node1")
    until(lambda: cluster.states() == {}, "mended")
    # Head and node take each other's word.
    until(lambda: "node1" in cluster.ssh("node1", "sinfo -h -N -o %N").stdout.decode(), "answered")


def test_a_killed_host_takes_everything_with_it_and_a_new_one_starts_anew(cluster: Cluster) -> None:
    os.kill(cluster.host_pid, signal.SIGKILL)
    until(lambda: all("has ended" in what for what in cluster.states().values()) and len(cluster.states()) == 3, "ended")
    for name in cluster.names:
        cluster.up(name)
    until(cluster.idle, "idle")


def _mend(cluster: Cluster, *, busy: bool = False) -> None:
    """What `deploy` does: bring up again what is not well."""
    for name in cluster.states():
        cluster.up(name)
    if not busy:
        until(cluster.idle, "idle")


def _provoke_refusal(cluster: Cluster) -> bool:
    """Have the head say something to node1, which must refuse it; never true."""
    cluster.run_on_head("timeout 3 srun -w node1 true")
    return False


def _is_whole(cluster: Cluster) -> bool:
    return cluster.run_on_head("cat /shared/early.out").endswith("whole")


def _is_lost(cluster: Cluster) -> bool:
    return "it is lost, submit it again" in health.ask_host(cluster.folder, "logs", {}, timeout_s=STUCK_S)["node0"]


def _skipping_the_wait(cluster: Cluster) -> bool:
    """Start what Slurm lets wait two minutes because it was put back into the queue; whether the queue is empty."""
    waiting = cluster.run_on_head("squeue -h -o '%i %r'")
    for line in waiting.splitlines():
        if line.endswith(" BeginTime"):
            cluster.run_on_head(f"scontrol update JobId={line.split()[0]} StartTime=now")
    return not waiting


def _again(daemon: str, setting: str = "") -> str:
    """The shell's words that end a daemon and start it, with one more variable, as its own user."""
    ended = f"pkill -KILL -x {daemon}; while pgrep -x {daemon}; do :; done"
    return f"{ended}; {setting} setpriv --reuid munge --regid munge --clear-groups {daemon} --force"
