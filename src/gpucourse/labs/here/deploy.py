"""`deploy --target here`: find the GPU, write the record, start the node and run the readiness checks.

The lab is this computer: one node, served by a process on loopback. Such a lab needs neither sshd nor Terraform nor root.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpucourse.context import Context
from gpucourse.errors import InfrastructureError, MissingError, UsageError
from gpucourse.labs.deploy import make_record, record_outcome
from gpucourse.labs.here.cards import require_gpus
from gpucourse.labs.readiness import wait_until_ready
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, LabProposal
from gpucourse.local import driver, health, layout, processes
from gpucourse.model.deployment import HereDeployment, Leftover, NodeHealth
from gpucourse.model.event import Watcher, stage
from gpucourse.model.manifest import Module
from gpucourse.model.node import Inventory, Node
from gpucourse.outside.documents import parse_typed
from gpucourse.remote.keys import ensure_client_key
from gpucourse.storage import find_login
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies
from gpucourse.workspace.paths import StackPaths, WorkspacePaths

NODE = "node0"
_DRIVER_S = 300.0  # the driver gives up before that, and reports why


@dataclass(kw_only=True)
class HereProposal(LabProposal):
    """The lab that is about to exist: the GPUs of this computer, and the Python that can use them."""

    deployment: HereDeployment
    python: str
    gpus: tuple[str, ...]


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[HereProposal]:
    """Check this computer's GPUs, and yield the proposal to use this computer as a module's lab. Nothing is changed.

    Raises UsageError if the module needs a cluster or the request asks for more than one node, MissingError if there are too
    few GPUs.
    """
    start_s = time.monotonic()
    module = context.catalog.module(request.module)
    _refuse_more_than_one_computer(module, request.nodes)
    stack = deployments.stack_name(module.id, "here")
    with context.lock(stack, f"deploy {module.id}"):
        existing = deployments.load_as(context.paths, stack, HereDeployment)
        python = context.settings.node_python or sys.executable
        with stage(context.watch, "look", "looking for a GPU"):
            gpus = require_gpus(python, context.environ, f"gpucourse deploy {module.id} --target local")
        _refuse_too_few_gpus(module, gpus)
        deployment = existing or make_record(context.workspace, HereDeployment, module, stack, template="here", nodes=1)
        healthy = existing is not None and all(node.healthy for node in open_here(context.paths, existing).inspect())
        changes = [] if healthy else [("create", NODE)]
        proposal = HereProposal(deployment=deployment, python=python, gpus=gpus, changes=changes, start_s=start_s)
        if request.dry_run:
            proposal.planned = proposal.make_result(healed=[NODE] if changes and deployment.inventory else [], dry_run=True)
        yield proposal


def build(context: Context, proposal: HereProposal) -> BuildResult:
    """Start the node, wait until it is ready, and return the lab. Raises InfrastructureError, UnreachableError."""
    deployment = proposal.deployment
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
    with record_outcome(context.paths, deployment):
        lab = open_here(context.paths, deployment)
        node = lab.up(proposal.python, proposal.gpus)
        deployment.inventory = Inventory(stack=deployment.stack, nodes=(node,))
        deployments.save(context.paths, deployment)
        with stage(context.watch, "ready", "waiting until the node is ready"):
            wait_until_ready(context, lab.paths, deployment.inventory)
    return BuildResult(labs=[proposal.make_result()])


def _refuse_more_than_one_computer(module: Module, nodes: int | None) -> None:
    simulated = f"gpucourse deploy {module.id} --target local"
    if module.lab.scheduler:
        problem = f"module {module.id} is about a cluster under {module.lab.scheduler.capitalize()}, but this is one computer"
        raise UsageError(problem, hint=f"use simulated nodes: {simulated}")
    if nodes not in {None, 1}:
        hint = f"gpucourse deploy {module.id} --target here; for more, use simulated nodes: {simulated} --nodes {nodes}"
        raise UsageError(f"--nodes {nodes}: this computer is one node", hint=hint)


def _refuse_too_few_gpus(module: Module, gpus: tuple[str, ...]) -> None:
    """Check that this computer has as many GPUs as the module uses nodes on other targets. Raises MissingError if it does
    not."""
    min_gpus = module.lab.local.nodes
    if len(gpus) < min_gpus:
        raise MissingError(
            f"module {module.id} spreads its work over {min_gpus} GPUs or more, but this computer has {len(gpus)}",
            hint=f"use simulated nodes: gpucourse deploy {module.id} --target local",
        )


@dataclass(frozen=True)
class _HereLab:
    """The node of one lab. Implements labs.destroy.Removable."""

    paths: StackPaths
    deployment: HereDeployment
    public_key: str

    def up(self, python: str, gpus: tuple[str, ...]) -> Node:
        """Start and return the node, with the interpreter and the GPUs of this computer. Raises InfrastructureError."""
        self._drive("up", {"python": python, "gpus": len(gpus), "instance_type": gpus[0]})
        return parse_typed(layout.description(self.paths.nodes, NODE).read_bytes(), Node)

    def down(self, watcher: Watcher) -> list[str]:  # noqa: ARG002 - the protocol passes it, and this takes a moment
        """End everything that runs on the node, and remove its files; return its name if it existed. Raises
        InfrastructureError."""
        existed = self.list_existing()
        self._drive("down", {"python": sys.executable})
        return existed

    def list_existing(self) -> list[str]:
        """Return the node, if any part of it exists."""
        return [NODE] if (self.paths.nodes / NODE).exists() else []

    def inspect(self) -> list[NodeHealth]:
        """Return the node's current health."""
        return health.inspect(self.paths.nodes, [NODE])

    def scan_leftovers(self) -> list[Leftover]:
        """Search the processes, ports and folders; return the leftovers of the lab."""
        return health.find_leftovers(self.paths.nodes, self.deployment.uid, self.deployment.ports)

    def end_everything(self) -> None:
        """End and remove everything that `down` missed."""
        health.end_everything(self.paths.nodes, self.deployment.uid)

    def _drive(self, verb: str, extra_variables: dict[str, object]) -> None:
        spec = {
            "name": NODE,
            "role": "head",
            "uid": self.deployment.uid,
            "user": find_login(),
            "public_key": self.public_key,
            "mode": self.deployment.target,
            **extra_variables,
        }
        words = [sys.executable, "-I", "-S", str(Path(driver.__file__)), verb, str(layout.description(self.paths.nodes, NODE))]
        # An `up` that outlives a killed command has the lab's mark, so the next destroy finds it; `down` ends marked processes.
        mark = {processes.STACK: self.deployment.uid} if verb == "up" else {}
        environment = {**os.environ, driver.SPEC_VARIABLE: json.dumps(spec), **mark}
        try:
            completed = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=_DRIVER_S, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise InfrastructureError(
                f"the node could not be brought {verb} within {_DRIVER_S:.0f} s", hint=self._retry_command
            ) from error
        if completed.returncode:
            raise InfrastructureError(
                completed.stderr.strip() or f"the node could not be brought {verb}", hint=self._retry_command
            )

    @property
    def _retry_command(self) -> str:
        return f"gpucourse destroy {self.deployment.module}, then gpucourse deploy {self.deployment.module} --target here"


def open_here(paths: WorkspacePaths, deployment: HereDeployment) -> _HereLab:
    """Return the lab of a deployment, ready to build, inspect and remove."""
    return _HereLab(paths.stack(deployment.stack), deployment, ensure_client_key(paths.client_key))
