"""A real first boot: the set-up of a node, as it is shipped, under a real kernel, systemd and cloud-init, in QEMU without KVM.

cloud-init's data source Ec2 finds a metadata service of version 2; the host key is read from the serial console and all that
follows goes over SSH, by the program's own code. What this cannot show: AWS's deep learning image and Ubuntu (it is Debian),
the NVIDIA driver and torch (both are stand-ins, so no step that needs a GPU proves anything), the Nitro hypervisor, EBS, the
network of AWS; and that powering off terminates an instance, which is a setting of EC2: here QEMU ends. Nor has it a cluster.

It runs where QEMU and mmdebstrap are; `make boot` installs them. GPUCOURSE_BOOT_PERCENT=40 holds the machine back.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pytest

from gpucourse.labs.aws import node_files
from gpucourse.labs.aws.first_boot import PATIENCE_S
from gpucourse.labs.aws.readiness import READINESS_TIMES
from tests.boot.image import PYTHON
from tests.boot.machine import Machine, subnet
from tests.boot.metadata import Metadata
from tests.boot.node import PERCENT, RealNode, boot_node, need_image
from tests.ports import take_port
from tests.system.first_boot import render

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600)]

GRACE_S = 300.0  # terraform/modules/node/files/deadline.sh
OFF_S = 600.0
_AFTER_LOGOUT = (
    "while loginctl show-user ubuntu >/dev/null 2>&1; do sleep 1; done; "
    'echo "after the last logout: $(cat /dev/shm/of-a-run)" >/dev/console'
)


@pytest.fixture(scope="module")
def service() -> Iterator[Metadata]:
    with Metadata() as service:
        yield service


@pytest.fixture(scope="module")
def node(service: Metadata, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A node that is ready. Its idle agent ends it after two minutes without use."""
    image = need_image()
    folder = tmp_path_factory.mktemp("boot")
    user_data = render(folder / "rendered", python=PYTHON, idle_minutes=2)["none"]
    port = take_port()
    network = subnet(metadata_port=service.server_port, ssh={0: port})
    machine = Machine(folder / "node0", image, network, percent=PERCENT)
    with boot_node(service, machine, user_data, port=port, key=folder / "key") as node:
        node.watch_first_boot(time.monotonic())
        yield node


@pytest.fixture(scope="module")
def overdue(node: RealNode, service: Metadata) -> Iterator[Machine]:
    """A copy of the running machine whose deadline passes in a moment."""
    before = node.run("cat /var/lib/gpucourse/deadline")
    move_deadline(node, 60)
    network = subnet(metadata_port=service.server_port, ssh={0: take_port()})
    twin = node.machine.copy(node.machine.folder.with_name("twin"), network)
    node_files.write(node.link, "deadline", before)
    try:
        twin.resume()
        yield twin
    finally:
        twin.close()


@pytest.fixture(scope="module")
def restarted_node(node: RealNode, overdue: Machine) -> RealNode:
    """The node after a stop and a start; its deadline passes while it is off."""
    assert overdue.process is not None
    move_deadline(node, 120)
    node.disconnect()
    node.machine.press_power_button()
    node.machine.wait_until_off(OFF_S)
    began = time.monotonic()
    node.machine.start()
    node.connect()
    node.seconds["SSH after a start"] = time.monotonic() - began
    return node


def move_deadline(node: RealNode, seconds: float) -> None:
    """Let the node end itself so many seconds from now, as `extend` does."""
    node_files.write(node.link, "deadline", f"{float(node.run('date +%s')) + seconds:.0f}")


def test_metadata_are_read_with_a_token_alone(node: RealNode, service: Metadata) -> None:
    assert node.node.host_key
    statuses = {(method, path.split("/")[-1]): status for method, path, status in service.requests}
    assert statuses["PUT", "token"] == 200
    assert statuses["GET", "user-data"] == 200
    assert {status for _, _, status in service.requests} <= {200, 404}


def test_the_wait_of_deploy_sees_the_node_become_ready(node: RealNode) -> None:
    told = json.loads(node.run("cat /var/lib/gpucourse/ready"))
    assert (told["name"], told["stack"], told["gpus"]) == ("node0", "w1-0123456789ab", ["Tesla T4"])
    assert node.run("cat /var/lib/gpucourse/step") == "done"
    versions = "uname -r; systemctl --version | head -n 1; cloud-init --version; cat /proc/uptime; systemd-analyze"
    sys.stdout.write(f"{node.run(versions)}\nsteps seen: {node.steps()}\nseconds: {node.seconds}\n")


def test_the_patience_of_deploy_is_long_enough(node: RealNode) -> None:
    assert node.seconds["host key"] < READINESS_TIMES.console_s
    assert node.seconds["ready"] - node.seconds["host key"] < PATIENCE_S


def test_the_console_shows_the_key_that_the_disk_has(node: RealNode) -> None:
    assert node.run("cat /etc/ssh/ssh_host_ed25519_key.pub").startswith(node.node.host_key)


def test_nothing_failed_and_the_killers_are_armed(node: RealNode) -> None:
    assert node.run("systemctl list-units --failed --plain --no-legend") == ""
    assert node.run("systemctl is-active gpucourse-deadline.timer gpucourse-idle.timer") == "active\nactive"
    assert node.run("systemctl is-enabled apt-daily.timer apt-daily-upgrade.timer || true") == "masked\nmasked"
    left = float(node.run("cat /var/lib/gpucourse/deadline")) - float(node.run("date +%s"))
    assert 0 < left <= 4 * 3600


def test_the_idle_agent_sees_the_session(node: RealNode) -> None:
    def sees() -> bool:
        view = node_files.idle(node.link)
        return view is not None and view.busy == ("SSH sessions: 1",) and view.ends_at is None

    node.machine.wait_for(sees, "the idle agent sees the session", 150.0)


def test_the_last_logout_leaves_shared_memory(node: RealNode) -> None:
    manager = "org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager"
    assert node.run(f"busctl get-property {manager} RemoveIPC") == "b false"
    assert "ubuntu" in node.run("loginctl list-users --no-legend")
    node.run("echo of-a-run >/dev/shm/of-a-run")
    node.run(f"sudo systemd-run --quiet --collect sh -c '{_AFTER_LOGOUT}'")
    node.disconnect()
    line = "after the last logout: of-a-run"
    node.machine.wait_for(lambda: line in node.machine.console, "shared memory after the last logout", 110.0)


def test_a_start_finds_the_node_as_it_was(restarted_node: RealNode) -> None:
    """It has the host key that was pinned, its set-up has not run again, and a passed deadline leaves time to move it."""
    assert restarted_node.run("grep -c '== .* done$' /var/log/gpucourse-setup.log") == "1"
    assert restarted_node.run("systemctl is-active gpucourse-deadline.timer gpucourse-idle.timer") == "active\nactive"
    assert restarted_node.run("systemctl list-units --failed --plain --no-legend") == ""
    restarted_node.run("while [ $(date +%s) -le $(cat /var/lib/gpucourse/deadline) ]; do sleep 1; done")
    move_deadline(restarted_node, 7200)
    restarted_node.run("! test -e /var/lib/gpucourse/ended")


def test_a_node_that_nobody_uses_switches_itself_off(restarted_node: RealNode) -> None:
    restarted_node.disconnect()
    restarted_node.machine.wait_until_off(OFF_S)
    assert "gpucourse: this node ends: idle for 2 minutes: no job, no SSH session" in restarted_node.machine.console


def test_a_node_past_its_deadline_switches_itself_off(overdue: Machine) -> None:
    overdue.wait_until_off(GRACE_S + OFF_S)
    assert "gpucourse: this node ends: the deadline passed at" in overdue.console
