"""`deploy --target here`: finds the GPU, then writes the record, starts the node and runs the readiness checks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.deploy import make_record, record_outcome
from gpucourse.labs.here.cards import require_gpus
from gpucourse.labs.here.lab import NODE, open_here
from gpucourse.labs.readiness import wait_until_ready
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, DeployResult, Proposal
from gpucourse.model.deployment import HereDeployment
from gpucourse.model.event import stage
from gpucourse.model.manifest import Module
from gpucourse.model.node import Inventory
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies


@dataclass(kw_only=True)
class HereProposal(Proposal):
    """The lab that is about to exist: the GPUs of this computer, and the Python that can use them. `began` is monotonic."""

    deployment: HereDeployment
    python: str
    gpus: tuple[str, ...]
    changes: list[tuple[str, str]]
    began: float


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[HereProposal]:
    """Propose this computer for the lab of a module, after a check of its GPUs. Changes nothing.

    Raises UsageError for a module or a number of nodes that one computer cannot provide, MissingError without a GPU.
    """
    began = time.monotonic()
    module = context.catalog.module(request.module)
    _refuse_more_than_one_computer(module, request.nodes)
    stack = deployments.stack_name(module.id, "here")
    with context.lock(stack, f"deploy {module.id}"):
        before = deployments.load_as(context.paths, stack, HereDeployment)
        python = context.settings.node_python or sys.executable
        with stage(context.watch, "look", "looking for a GPU"):
            gpus = require_gpus(python, context.environ, f"gpucourse deploy {module.id} --target local")
        _refuse_too_few_gpus(module, gpus)
        deployment = before or make_record(context.workspace, HereDeployment, module, stack, template="here", nodes=1)
        healthy = before is not None and all(node.healthy for node in open_here(context.paths, before).inspect())
        changes = [] if healthy else [("create", NODE)]
        proposal = HereProposal(deployment=deployment, python=python, gpus=gpus, changes=changes, began=began)
        if request.dry_run:
            proposal.planned = _make_result(proposal, dry_run=True)
        yield proposal


def build(context: Context, proposal: HereProposal) -> BuildResult:
    """Start the node and wait until it is ready. Raises InfrastructureError, UnreachableError."""
    deployment = proposal.deployment
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
    with record_outcome(context.paths, deployment):
        lab = open_here(context.paths, deployment)
        node = lab.up(proposal.python, proposal.gpus)
        deployment.inventory = Inventory(stack=deployment.stack, nodes=(node,))
        deployments.save(context.paths, deployment)
        with stage(context.watch, "ready", "waiting until the node is ready"):
            wait_until_ready(context, lab.paths, deployment.inventory)
    return BuildResult(labs=[_make_result(proposal, dry_run=False)])


def _refuse_more_than_one_computer(module: Module, nodes: int | None) -> None:
    simulated = f"gpucourse deploy {module.id} --target local"
    if module.lab.scheduler:
        what = f"module {module.id} is about a cluster under {module.lab.scheduler.capitalize()}, and this is one computer"
        raise UsageError(what, hint=f"use simulated nodes: {simulated}")
    if nodes not in {None, 1}:
        hint = f"gpucourse deploy {module.id} --target here; for more, simulated nodes: {simulated} --nodes {nodes}"
        raise UsageError(f"--nodes {nodes}: this computer is one node", hint=hint)


def _refuse_too_few_gpus(module: Module, gpus: tuple[str, ...]) -> None:
    """Check that there are enough GPUs: work that uses several nodes elsewhere uses the GPUs of this computer. Raises
    MissingError."""
    wanted = module.lab.local.nodes
    if len(gpus) < wanted:
        raise MissingError(
            f"module {module.id} spreads its work over {wanted} GPUs or more, and this computer has {len(gpus)}",
            hint=f"use simulated nodes: gpucourse deploy {module.id} --target local",
        )


def _make_result(proposal: HereProposal, *, dry_run: bool) -> DeployResult:
    return DeployResult(
        deployment=proposal.deployment,
        changes=proposal.changes,
        dry_run=dry_run,
        seconds=time.monotonic() - proposal.began,
        healed=[NODE] if proposal.changes and proposal.deployment.inventory and dry_run else [],
    )
