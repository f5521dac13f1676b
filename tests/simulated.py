"""Simulated nodes for tests, without Terraform: the driver is called as Terraform would call it.

nodes = start_simulated_nodes(tmp_path, 2)
try:
    ... nodes.nodes[0].port, nodes.key ...
finally:
    nodes.stop()
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from gpucourse.local import driver, health, layout, processes
from gpucourse.model.node import Inventory, Node
from tests.parts import need, need_module
from tests.waiting import STUCK_S

DRIVER = Path(driver.__file__)


@dataclass
class SimulatedNodes:
    """The nodes of one stack below `folder`, the private key that they accept, and the commands that change them."""

    folder: Path
    key: Path
    uid: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def inventory(self) -> Inventory:
        """Return the nodes in the form of a stack's output."""
        return Inventory(stack="test", nodes=tuple(self.nodes))

    @property
    def public_key(self) -> str:
        """Return the public key that the nodes accept."""
        return self.key.with_suffix(".pub").read_text().strip()

    @property
    def ports(self) -> list[int]:
        """Return the ports of the nodes."""
        return [node.port for node in self.nodes]

    @property
    def host_pid(self) -> int:
        """Return the id of the process that hosts the nodes."""
        document = layout.read_json(self.folder / layout.HOST)
        assert document is not None, "there is no host"
        return int(document["pid"])

    def node(self, name: str) -> Node:
        """Return the node of that name."""
        return next(node for node in self.nodes if node.name == name)

    def home(self, name: str) -> Path:
        """Return the folder in which a session on the node starts."""
        return layout.home(self.folder, name)

    def spec(self, name: str) -> dict[str, str]:
        """Return the spec of one node."""
        return {
            "name": name,
            "role": "head" if name == "node0" else "worker",
            "uid": self.uid,
            "user": getpass.getuser(),
            "python": sys.executable,
            "public_key": self.public_key,
        }

    def command(self, verb: str, name: str) -> tuple[list[str], dict[str, str]]:
        """Return the driver's command line and environment, as Terraform makes them."""
        file = layout.description(self.folder, name)
        return [sys.executable, "-I", "-S", str(DRIVER), verb, str(file)], {
            **os.environ,
            driver.SPEC_VARIABLE: json.dumps(self.spec(name)),
            processes.DRIVER: self.uid,
        }

    def drive(self, verb: str, name: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Call the driver as Terraform does."""
        command, variables = self.command(verb, name)
        return subprocess.run(
            command, env={**variables, **environment}, capture_output=True, text=True, timeout=STUCK_S, check=False
        )

    def up(self, name: str) -> Node:
        """Start one node or repair it, and return it."""
        result = self.drive("up", name)
        assert result.returncode == 0, result.stderr
        node = self.read(name)
        self.nodes = sorted(
            [node, *(sibling for sibling in self.nodes if sibling.name != name)], key=lambda other: int(other.name[4:])
        )
        return node

    def read(self, name: str) -> Node:
        """Return the node as its file describes it now."""
        return Node(**json.loads(layout.description(self.folder, name).read_text()))

    def down(self, name: str) -> None:
        """Take one node down."""
        result = self.drive("down", name)
        assert result.returncode == 0, result.stderr
        self.nodes = [node for node in self.nodes if node.name != name]

    def trim(self, count: int) -> subprocess.CompletedProcess[str]:
        """Remove every node whose number is `count` or higher, as Terraform does."""
        command = [sys.executable, "-I", "-S", str(DRIVER), "trim", str(self.folder)]
        environment = {**os.environ, driver.SPEC_VARIABLE: json.dumps({"uid": self.uid, "count": count})}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STUCK_S, check=False)

    def stop(self) -> None:
        """Take down every node that this object brought up."""
        for name in [node.name for node in self.nodes]:
            self.down(name)

    def options(self, name: str, *, key: Path | None = None) -> list[str]:
        """Return the options with which `ssh`, `scp` and `sftp` reach a node: its pinned host key, the test's key, and no
        settings of the user who runs the test."""
        node = self.node(name)
        known_hosts = self.key.with_name(f"known_hosts_{name}")
        known_hosts.write_text(f"[{node.address}]:{node.port} {node.host_key}\n")
        return [
            *("-F", "none", "-i", str(key or self.key), "-o", f"Port={node.port}", "-o", f'UserKnownHostsFile="{known_hosts}"'),
            *("-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"),
        ]

    def address(self, name: str) -> str:
        """Return `user@address` of a node."""
        return f"{self.node(name).user}@{self.node(name).address}"

    def ssh(
        self, name: str, *command: str, extra_options: Sequence[str] = (), stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command on a node with the system's own ssh, and return how it ended."""
        words = [need("ssh"), *self.options(name), *extra_options, self.address(name), *command]
        return subprocess.run(words, capture_output=True, timeout=STUCK_S, check=False, input=stdin)

    def leftovers(self) -> list[str]:
        """Return what the leak scan finds of these nodes."""
        return [f"{leftover.kind} {leftover.id}" for leftover in health.find_leftovers(self.folder, self.uid, self.ports)]


@contextmanager
def serve_simulated_nodes(folder: Path, count: int, *, key: Path | None = None) -> Iterator[SimulatedNodes]:
    """Yield nodes for the block. Afterwards, end everything that is left of them, whatever state the test left them in."""
    lab = start_simulated_nodes(folder, count, key=key)
    try:
        yield lab
    finally:
        health.end_everything(lab.folder, lab.uid)


def start_simulated_nodes(folder: Path, count: int, *, key: Path | None = None) -> SimulatedNodes:
    """Return `count` nodes below `folder`/nodes that accept `key`. Without a key, a new one is made."""
    key = key or make_key(folder / "id_ed25519")
    simulated = SimulatedNodes(folder=folder / "nodes", key=key, uid=f"test-{uuid.uuid4().hex[:12]}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(simulated.up, [f"node{number}" for number in range(count)]))
    return simulated


def take_away(folder: Path) -> None:
    """Remove a folder in one step, and then its files: a host that misses some of them begins to remove the others itself."""
    aside = folder.with_name(f"{folder.name}-taken-away-{uuid.uuid4().hex}")
    folder.rename(aside)
    shutil.rmtree(aside)


def make_key(path: Path) -> Path:
    """Return a new private key without a passphrase, with its public part next to it. Skip the test without asyncssh."""
    asyncssh = need_module("asyncssh")
    path.parent.mkdir(parents=True, exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    path.touch(mode=0o600)
    path.write_bytes(key.export_private_key())
    path.with_suffix(".pub").write_bytes(key.export_public_key())
    return path
