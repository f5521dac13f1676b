"""A real first boot: the set-up of a Slurm lab, as shipped, under a real kernel, systemd and cloud-init, in QEMU without KVM.

Two machines share one wire: a head without a GPU, which is the NFS server as well, and a worker. cloud-init's data source Ec2
finds a metadata service of version 2; the host keys are read from the serial consoles, and all that follows goes over SSH by
the program's own code. A job runs; the worker is stopped, started, and left alone until its idle agent ends it; the head's
deadline passes. Nobody waits for minutes: a node's clock is moved on when its killers have looked.

What this cannot show: AWS's deep learning image and Ubuntu (it is Debian), the NVIDIA driver and torch (both are stand-ins, so
no step that needs a GPU proves anything), packages from the network (the image has Slurm's), EFS, the Nitro hypervisor, EBS,
the network of AWS; and that powering off terminates an instance, which is a setting of EC2: here QEMU ends.

It runs where QEMU and mmdebstrap are; `make boot` installs them. GPUCOURSE_BOOT_PERCENT=40 gives each machine 40% of one
processor.
"""

from __future__ import annotations

import json
import resource
import shlex
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from gpucourse.labs.aws import node_files
from gpucourse.labs.aws.first_boot import PATIENCE_S
from gpucourse.labs.aws.readiness import READINESS_TIMES
from gpucourse.labs.slurm_readiness import wait_for_slurm
from gpucourse.model.node import Inventory
from tests.boot import wire
from tests.boot.image import PYTHON
from tests.boot.node import RealNode, boot_node, need_image
from tests.system.first_boot import render

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600)]

STACK = "w1-0123456789ab"
GRACE_S = 300.0  # terraform/modules/node/files/deadline.sh
OFF_S = 600.0
_AFTER_LOGOUT = (
    "while loginctl show-user ubuntu >/dev/null 2>&1; do sleep 1; done; "
    'echo "after the last logout: $(cat /dev/shm/of-a-run)" >/dev/console'
)
# The timers look each minute of the node's clock. A look may take seconds: the next minute passes when it is over.
_PASS_MINUTES = (
    "cd /var/lib/gpucourse; touch /run/passed; while sleep 1; do "
    "[ idle.json -nt /run/passed ] || continue; touch --date '+60 seconds' /run/passed; date --set '+60 seconds'; done"
)
_PASS_DEADLINE = 'date --set "@$(($(cat /var/lib/gpucourse/deadline) + 1))"'
_PASS_GRACE = f"until [ $(cut -d. -f1 /proc/uptime) -ge {GRACE_S:.0f} ]; do sleep 1; done"
_JOB = "hostname; id -un; echo $CUDA_VISIBLE_DEVICES; stat --file-system --format=%T /shared"


class Lab(NamedTuple):
    """Both nodes, ready."""

    head: RealNode
    worker: RealNode

    def wait_for_slurm(self) -> None:
        """Wait until Slurm has the worker idle with its GPU, by the code that `deploy` uses."""
        nodes = tuple(real.node for real in self)
        wait_for_slurm(self.head.context, Inventory(stack=STACK, nodes=nodes), patience_s=READINESS_TIMES.slurm_s, poll_s=2.0)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is ready. The idle agents end its nodes after two minutes without use."""
    image = need_image()
    folder = tmp_path_factory.mktemp("boot")
    told = {"python": PYTHON, "idle_minutes": 2, "stack": STACK, "shared_address": wire.address(0)}
    scripts = [
        render(folder / "rendered0", name="node0", role="head", gpus=0, **told)["slurm"],
        render(folder / "rendered1", name="node1", role="worker", gpus=1, **told)["slurm"],
    ]
    serves = "systemd.wants=nfs-server.service"
    began = time.monotonic()
    with (
        wire.Wire() as subnet,
        boot_node(subnet, folder, image, scripts[0], number=0, gpus=0, kernel=serves) as head,
        boot_node(subnet, folder, image, scripts[1], number=1, gpus=1) as worker,
        ThreadPoolExecutor() as pool,
    ):
        list(pool.map(lambda real: real.watch_first_boot(began), (head, worker)))
        yield Lab(head, worker)


@pytest.fixture(scope="module")
def restarted_worker(lab: Lab) -> RealNode:
    """The worker after a stop and a start."""
    worker = lab.worker
    worker.disconnect()
    worker.machine.press_power_button()
    began = time.monotonic()
    worker.machine.wait_until_off(OFF_S)
    worker.seconds["stop"] = time.monotonic() - began
    began = time.monotonic()
    worker.machine.start()
    worker.connect()
    worker.note("SSH after a start", began)
    return worker


def move_deadline(node: RealNode, seconds: float) -> None:
    """Let the node end itself so many seconds from now, as `extend` does."""
    node_files.write(node.link, "deadline", f"{float(node.run('date +%s')) + seconds:.0f}")


def leave_alone(node: RealNode, script: str) -> None:
    """Close every session on the node, which runs a script as root from then on."""
    node.run(f"sudo systemd-run --quiet --collect sh -c {shlex.quote(script)}")
    node.disconnect()


def test_metadata_are_read_with_a_token_alone(lab: Lab) -> None:
    for node in lab:
        assert node.node.host_key
        requests = node.service.requests
        statuses = {(method, path.split("/")[-1]): status for method, path, status in requests}
        assert statuses["PUT", "token"] == 200
        assert statuses["GET", "user-data"] == 200
        assert {status for _, _, status in requests} <= {200, 404}


def test_the_wait_of_deploy_sees_the_nodes_become_ready(lab: Lab) -> None:
    told = [json.loads(node.run("cat /var/lib/gpucourse/ready")) for node in lab]
    assert [(node["name"], node["role"], node["stack"], node["gpus"]) for node in told] == [
        ("node0", "head", STACK, []),
        ("node1", "worker", STACK, ["Tesla T4"]),
    ]
    versions = "uname -r; systemctl --version | head -n 1; cloud-init --version; sinfo -V; systemd-analyze"
    sys.stdout.write(f"{lab.worker.run(versions)}\n")
    for node in lab:
        assert node.run("cat /var/lib/gpucourse/step") == "done"
        reached = f"seconds: {node.seconds}\nof QEMU's processor time: {node.processor_s}"
        sys.stdout.write(f"{node.node.name}\nsteps seen: {node.steps()}\n{reached}\n")


def test_the_patience_of_deploy_is_long_enough(lab: Lab) -> None:
    for node in lab:
        assert node.seconds["host key"] < READINESS_TIMES.console_s
        assert node.seconds["ready"] - node.seconds["host key"] < PATIENCE_S


def test_cloud_init_has_nothing_to_warn_of(lab: Lab) -> None:
    for node in lab:
        assert node.run("sudo grep -E 'WARNING|ERROR|Traceback' /var/log/cloud-init.log || true") == ""


def test_the_console_shows_the_key_that_the_disk_has(lab: Lab) -> None:
    for node in lab:
        assert node.run("cat /etc/ssh/ssh_host_ed25519_key.pub").startswith(node.node.host_key)


def test_nothing_failed_and_the_killers_are_armed(lab: Lab) -> None:
    for node in lab:
        assert node.run("systemctl list-units --failed --plain --no-legend") == ""
        assert node.run("systemctl is-active gpucourse-deadline.timer gpucourse-idle.timer") == "active\nactive"
        assert node.run("systemctl is-enabled apt-daily.timer apt-daily-upgrade.timer || true") == "masked\nmasked"
        left = float(node.run("cat /var/lib/gpucourse/deadline")) - float(node.run("date +%s"))
        assert 0 < left <= 4 * 3600


def test_a_job_runs_on_the_worker_and_writes_to_the_shared_folder(lab: Lab) -> None:
    lab.wait_for_slurm()
    lab.head.run(f"sbatch --wait --gres=gpu:1 --chdir=/shared --output=/shared/job.out --wrap={shlex.quote(_JOB)}")
    for node in lab:
        assert node.run("cat /shared/job.out") == "node1\nubuntu\n0\nnfs"
    assert lab.head.run("sudo cat /shared/.gpucourse/*/keys/munge.key 2>/dev/null | wc -c") == "0"


def test_the_idle_agent_sees_the_session(lab: Lab) -> None:
    def sees() -> bool:
        view = node_files.idle(lab.worker.link)
        return view is not None and view.busy == ("SSH sessions: 1",) and view.ends_at is None

    lab.worker.machine.wait_for(sees, "the idle agent sees the session", 150.0)


def test_the_last_logout_leaves_shared_memory(lab: Lab) -> None:
    node = lab.worker
    manager = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
    assert node.run(f"busctl get-property {manager} RemoveIPC") == "b false"
    assert "ubuntu" in node.run("loginctl list-users --no-legend")
    node.run("echo of-a-run >/dev/shm/of-a-run")
    leave_alone(node, _AFTER_LOGOUT)
    line = "after the last logout: of-a-run"
    node.machine.wait_for(lambda: line in node.machine.console, "shared memory after the last logout", 110.0)


def test_a_start_finds_the_node_as_it_was(lab: Lab, restarted_worker: RealNode) -> None:
    """It has the host key that was pinned, its set-up has not run again, a passed deadline leaves time to move it, and Slurm
    has the node back."""
    node = restarted_worker
    if float(node.run("cut -d. -f1 /proc/uptime")) < GRACE_S - 60:  # later its killer would be right
        move_deadline(node, 60)
        node.run(f"sudo {_PASS_DEADLINE} && sudo systemctl start gpucourse-deadline.service")
        move_deadline(node, 7200)
    node.run("! test -e /var/lib/gpucourse/ended")
    assert node.run("grep -c '== .* done$' /var/log/gpucourse-setup.log") == "1"
    assert node.run("systemctl is-active gpucourse-deadline.timer gpucourse-idle.timer") == "active\nactive"
    lab.wait_for_slurm()
    assert node.run("systemctl list-units --failed --plain --no-legend") == ""
    sys.stdout.write(f"seconds: {node.seconds}\nof QEMU's processor time: {node.processor_s}\n")


def test_a_node_that_nobody_uses_switches_itself_off(lab: Lab, restarted_worker: RealNode) -> None:
    lab.head.disconnect()
    leave_alone(restarted_worker, _PASS_MINUTES)
    restarted_worker.machine.wait_until_off(OFF_S)
    assert "gpucourse: this node ends: idle for 2 minutes: no job, no SSH session" in restarted_worker.machine.console


def test_a_node_past_its_deadline_switches_itself_off(lab: Lab) -> None:
    head = lab.head
    head.connect()
    move_deadline(head, 120)
    leave_alone(head, f"{_PASS_GRACE}; {_PASS_DEADLINE}")
    head.machine.wait_until_off(GRACE_S + OFF_S)
    assert "gpucourse: this node ends: the deadline passed at" in head.machine.console
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"processor time of all machines: {used.ru_utime + used.ru_stime:.0f} s\n")
