"""A lab that is this computer: one node, served by a process on loopback. It needs neither sshd nor Terraform nor root."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from gpucourse.errors import InfrastructureError
from gpucourse.local import driver, health, layout, processes
from gpucourse.model.deployment import HereDeployment, Leftover, NodeHealth
from gpucourse.model.event import Watcher
from gpucourse.model.node import Node
from gpucourse.outside.documents import parse_typed
from gpucourse.remote.keys import ensure_client_key
from gpucourse.storage import find_login
from gpucourse.workspace.paths import WorkspacePaths
from gpucourse.workspace.stack_paths import StackPaths

NODE = "node0"
_DRIVER_S = 300.0  # it gives up by itself before that, and reports why


@dataclass(frozen=True)
class HereLab:
    """The node of one lab. A labs.destroy.Removable."""

    paths: StackPaths
    deployment: HereDeployment
    public_key: str

    def up(self, python: str, gpus: tuple[str, ...]) -> Node:
        """Start the node, with the interpreter and the GPUs of this computer. Raises InfrastructureError."""
        self._drive("up", {"python": python, "gpus": len(gpus), "instance_type": gpus[0]})
        return parse_typed(layout.description(self.paths.nodes, NODE).read_bytes(), Node)

    def down(self, watcher: Watcher) -> list[str]:  # noqa: ARG002 - the protocol passes it, and this takes a moment
        """End everything that runs on the node, and remove its files; return what existed. Raises InfrastructureError."""
        existed = self.list_existing()
        self._drive("down", {"python": sys.executable})
        return existed

    def list_existing(self) -> list[str]:
        """Return the node if anything of it exists."""
        return [NODE] if (self.paths.nodes / NODE).exists() else []

    def inspect(self) -> list[NodeHealth]:
        """Return the node's current health."""
        return health.inspect(self.paths.nodes, [NODE])

    def scan_leftovers(self) -> list[Leftover]:
        """Return what still exists, searched by process, port and folder."""
        inventory = self.deployment.inventory
        ports = [node.port for node in inventory.nodes] if inventory else []
        return health.find_leftovers(self.paths.nodes, self.deployment.uid, ports)

    def end_everything(self) -> None:
        """End and remove everything that `down` missed."""
        health.end_everything(self.paths.nodes, self.deployment.uid)

    def _drive(self, verb: str, more: dict[str, object]) -> None:
        spec = {
            "name": NODE,
            "role": "head",
            "uid": self.deployment.uid,
            "user": find_login(),
            "public_key": self.public_key,
            "mode": self.deployment.target,
            **more,
        }
        words = [sys.executable, "-I", "-S", str(Path(driver.__file__)), verb, str(layout.description(self.paths.nodes, NODE))]
        # An `up` that outlives a killed command has the lab's mark, so the next destroy finds it; `down` ends all that have it.
        mark = {processes.STACK: self.deployment.uid} if verb == "up" else {}
        environment = {**os.environ, driver.SPEC_VARIABLE: json.dumps(spec), **mark}
        try:
            completed = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=_DRIVER_S, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(
                f"the node could not be brought {verb} within {_DRIVER_S:.0f} s", hint=self._again
            ) from error
        if completed.returncode:
            raise InfrastructureError(completed.stderr.strip() or f"the node could not be brought {verb}", hint=self._again)

    @property
    def _again(self) -> str:
        return f"gpucourse destroy {self.deployment.module}, then gpucourse deploy {self.deployment.module} --target here"


def open_here(paths: WorkspacePaths, deployment: HereDeployment) -> HereLab:
    """Return the lab of a deployment, ready to build, inspect and remove."""
    return HereLab(paths.stack(deployment.stack), deployment, ensure_client_key(paths.client_key))
