"""The deadline on a node: its script with a stopped clock, and stand-ins for the system's programs."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from tests.waiting import STUCK_S

FILES = Path(__file__).parents[3] / "terraform" / "modules" / "node" / "files"
NOW = 1_800_000_000
HOUR = 3600


class Node:
    """A folder that replaces the root of a node that has been up for a day."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("var/lib/gpucourse", "proc", "opt/gpucourse", "bin", "dev"):
            (root / name).mkdir(parents=True)
        self.state = root / "var/lib/gpucourse"
        self.set_uptime(86400)
        self.stand_in("date", f'case "$*" in "+%s") echo {NOW} ;; *) exec /bin/date "$@" ;; esac')
        program = root / "opt/gpucourse/end-node.sh"
        program.write_text((FILES / "end-node.sh").read_text())
        program.chmod(0o755)
        for name in ("systemctl", "logger", "wall", "umount", "sync"):
            self.stand_in(name, f'echo "{name} $*" >>"{root}/done"')

    def stand_in(self, name: str, body: str) -> None:
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def set_uptime(self, seconds_ago: int) -> None:
        (self.root / "proc/uptime").write_text(f"{seconds_ago}.25 99.9\n")

    def deadline(self, text: str) -> None:
        (self.state / "deadline").write_text(text)

    def look(self, **options: str) -> str:
        """Check the deadline once, and return the commands that would end the node."""
        environment = {
            "GPUCOURSE_ROOT": str(self.root),
            "TTL_SECONDS": str(4 * HOUR),
            "PATH": f"{self.root}/bin:/usr/bin:/bin",
            **options,
        }
        subprocess.run(["bash", str(FILES / "deadline.sh")], env=environment, check=True, timeout=STUCK_S, capture_output=True)
        return self.commands_run

    @property
    def commands_run(self) -> str:
        return (self.root / "done").read_text() if (self.root / "done").exists() else ""


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path / "a node")


@pytest.mark.parametrize("minutes", [0, 10 * HOUR])
def test_deadline_ends_the_node_and_leaves_the_reason(node: Node, minutes: int) -> None:
    node.deadline(f"{NOW - minutes}")
    output = node.look()
    assert output.splitlines()[-1] == "systemctl poweroff"
    assert "this node ends: the deadline passed at 20" in output
    assert "the deadline passed" in (node.state / "ended").read_text()
    assert "the deadline passed" in (node.root / "dev/console").read_text()


def test_deadline_leaves_five_minutes_after_a_boot_and_no_more(node: Node) -> None:
    node.deadline(f"{NOW - HOUR}")
    node.set_uptime(299)
    assert node.look() == ""
    node.set_uptime(300)
    assert "systemctl poweroff" in node.look()


def test_deadline_is_moved_by_writing_the_file(node: Node) -> None:
    node.deadline(f"{NOW + 1}")
    assert node.look() == ""
    node.deadline(f"{NOW + 2 * HOUR}.75\n")
    assert node.look() == ""
    assert (node.state / "deadline.last").read_text() == f"{NOW + 2 * HOUR}\n"


@pytest.mark.parametrize("text", ["", "-1", "2026-11-20T18:00:00Z", "$(reboot)", "9" * 40])
def test_deadline_that_is_damaged_leaves_the_last_good_one(node: Node, text: str) -> None:
    node.deadline(f"{NOW + HOUR}")
    node.look()
    node.deadline(text)
    assert node.look() == ""
    (node.state / "deadline.last").write_text(f"{NOW - 1}\n")
    assert "systemctl poweroff" in node.look()


def test_deadline_counts_from_the_boot_when_none_is_written(node: Node) -> None:
    node.set_uptime(4 * HOUR - 1)
    assert node.look() == ""
    node.set_uptime(4 * HOUR)
    assert "systemctl poweroff" in node.look()


def test_end_node_does_not_wait_for_a_shared_folder(node: Node) -> None:
    for name in ("mountpoint", "stat", "ls", "findmnt"):  # whoever looks at the folder waits for a server that is gone
        node.stand_in(name, f'echo "{name} $*" >>"{node.root}/done"')
    node.stand_in("umount", f'echo "umount $*" >>"{node.root}/done"; exit 32')
    node.deadline(f"{NOW}")
    output = node.look(SHARED_FOLDER="/shared").splitlines()
    assert [line.split()[0] for line in output] == ["logger", "wall", "umount", "systemctl"]
    assert output[-2:] == [f"umount --internal-only --lazy {node.root}/shared", "systemctl poweroff"]


def test_end_node_forces_a_poweroff_that_is_refused(node: Node) -> None:
    node.stand_in("systemctl", f'echo "systemctl $*" >>"{node.root}/done"; [ "$*" = "poweroff --force --force" ]')
    node.deadline(f"{NOW}")
    assert node.look().splitlines()[-3:] == [
        "systemctl poweroff",
        "systemctl poweroff --force",
        "systemctl poweroff --force --force",
    ]
