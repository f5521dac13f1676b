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
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpucourse.local import driver, layout
from gpucourse.model.node import Inventory, Node

DRIVER = Path(driver.__file__)


@dataclass
class SimulatedNodes:
    """The nodes of one stack under `folder`, the private key that opens them, and the commands that change them."""

    folder: Path
    key: Path
    uid: str
    nodes: list[Node] = field(default_factory=list)

    @property
    def inventory(self) -> Inventory:
        """The nodes as a stack hands them over."""
        return Inventory(stack="test", nodes=tuple(self.nodes))

    @property
    def public_key(self) -> str:
        """The line that opens the nodes."""
        return self.key.with_suffix(".pub").read_text().strip()

    def spec(self, name: str) -> dict[str, str]:
        """What is asked of one node."""
        return {
            "name": name,
            "role": "head" if name == "node0" else "worker",
            "uid": self.uid,
            "user": getpass.getuser(),
            "python": sys.executable,
            "public_key": self.public_key,
        }

    def drive(self, verb: str, name: str) -> subprocess.CompletedProcess[str]:
        """Call the driver as Terraform does."""
        environment = {**os.environ, driver.SPEC_VARIABLE: json.dumps(self.spec(name))}
        command = [sys.executable, "-I", "-S", str(DRIVER), verb, str(layout.description(self.folder, name))]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    def up(self, name: str) -> Node:
        """Bring one node up, or heal it."""
        done = self.drive("up", name)
        assert done.returncode == 0, done.stderr
        node = Node(**json.loads(layout.description(self.folder, name).read_text()))
        self.nodes = sorted(
            [node, *(other for other in self.nodes if other.name != name)], key=lambda other: int(other.name[4:])
        )
        return node

    def down(self, name: str) -> None:
        """Take one node down."""
        done = self.drive("down", name)
        assert done.returncode == 0, done.stderr
        self.nodes = [node for node in self.nodes if node.name != name]

    def stop(self) -> None:
        """Take every node down that this object brought up."""
        for name in [node.name for node in self.nodes]:
            self.down(name)


def start_simulated_nodes(folder: Path, count: int, *, key: Path | None = None) -> SimulatedNodes:
    """`count` nodes under `folder`/nodes, opened by `key` (a new one where none is given)."""
    key = key or make_key(folder / "id_ed25519")
    simulated = SimulatedNodes(folder=folder / "nodes", key=key, uid=f"test-{uuid.uuid4().hex[:12]}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(simulated.up, [f"node{number}" for number in range(count)]))
    return simulated


def make_key(path: Path) -> Path:
    """A new private key without a passphrase, its public part beside it. Skips where asyncssh is not installed."""
    asyncssh = pytest.importorskip("asyncssh")
    path.parent.mkdir(parents=True, exist_ok=True)
    key = asyncssh.generate_private_key("ssh-ed25519")
    path.touch(mode=0o600)
    path.write_bytes(key.export_private_key())
    path.with_suffix(".pub").write_bytes(key.export_public_key())
    return path
