"""`deploy` on this computer: write the record, run Terraform, then the readiness checks. A repeated deploy repairs dead
nodes."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.labs.collect_before_destroy import collect_runs, find_ending
from gpucourse.labs.deploy import make_record, record_outcome
from gpucourse.labs.local.lab import SimulatedLab, choose, machine_names, open_simulated
from gpucourse.labs.local.requirements import FLAG
from gpucourse.labs.readiness import wait_for_slurm, wait_until_ready
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, LabProposal
from gpucourse.model.deployment import LocalDeployment
from gpucourse.model.event import Watcher, stage
from gpucourse.model.manifest import Module
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies

_FILES_OF_A_NODE, _FILES_OF_A_HOST = 10, 20  # open files of the process that hosts the nodes: 154 with a run on 16 nodes


@dataclass(kw_only=True)
class LocalProposal(LabProposal):
    """A lab of simulated nodes that is about to be built. `fresh`: it has no record yet."""

    deployment: LocalDeployment
    fresh: bool


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[LocalProposal]:
    """Yield the proposal to build a new lab, or to repair or resize an existing one.

    With `dry_run`, also plan it with Terraform.

    Raises UsageError for an unsuitable module or number of nodes. Raises MissingError if Terraform or a requirement of
    namespaces is missing.
    """
    start_s = time.monotonic()
    if request.unpack_slurm and request.dry_run:
        hint = f"gpucourse deploy {request.module} --target local {FLAG}"
        raise UsageError(f"{FLAG}: --dry-run downloads nothing", hint=hint)
    module, nodes = context.catalog.module(request.module), request.nodes
    stack = deployments.stack_name(module.id, "local")
    _check_count(module, nodes)
    with context.lock(stack, f"deploy {module.id}"):
        existing = deployments.load_as(context.paths, stack, LocalDeployment)
        deployment = existing or make_record(
            context.workspace, LocalDeployment, module, stack, template=module.lab.local.template, nodes=module.lab.local.nodes
        )
        if nodes or not existing:
            deployment.nodes_wanted = nodes or module.lab.local.nodes
        _check_open_files(deployment)
        fixed_values = _list_fixed(deployment)
        choose(context, deployment, module.lab.scheduler, request.link, unpack=request.unpack_slurm)
        removed_nodes = _find_leaving(deployment, is_rebuilt=fixed_values != _list_fixed(deployment))
        proposal = LocalProposal(
            deployment=deployment,
            fresh=existing is None,
            start_s=start_s,
            removed_nodes=removed_nodes,
            ends=find_ending(context.paths, deployment, removed_nodes),
        )
        if request.dry_run:
            lab = open_simulated(context, deployment)
            sick = _plan(context.watch, lab, proposal)
            if proposal.fresh:
                lab.terraform.discard_if_empty()
            proposal.planned = proposal.make_result(healed=sick, dry_run=True)
        yield proposal


def build(context: Context, proposal: LocalProposal) -> BuildResult:
    """Build the lab, and return it. First collect the outputs on nodes that are removed.

    Raises MissingError without Terraform, TerraformFailed, UnreachableError.
    """
    deployment = proposal.deployment
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
    lab = open_simulated(context, deployment)
    with stage(context.watch, "plan", "planning"):
        sick = _plan(context.watch, lab, proposal)
    if proposal.removed_nodes:
        collect_runs(context, deployment, discard=False, removed_nodes=proposal.removed_nodes)
    with record_outcome(context.paths, deployment):
        with stage(context.watch, "apply", f"building {deployment.stack}"):
            deployment.inventory = lab.terraform.up(context.watch)
        deployment.terraform = lab.terraform.binary.describe()
        deployments.save(context.paths, deployment)
        with stage(context.watch, "ready", "waiting until every node is ready"):
            wait_until_ready(context, lab.paths, deployment.inventory)
            if deployment.has_slurm:
                wait_for_slurm(context, deployment.inventory, looks=lab.inspect)
    return BuildResult(labs=[proposal.make_result(healed=sick)])


def _list_fixed(deployment: LocalDeployment) -> tuple[object, ...]:
    """Return the properties that cannot be changed on existing nodes. If one of them differs, all nodes are recreated."""
    return deployment.link, deployment.variables.one_host, deployment.variables.layer


def _find_leaving(deployment: LocalDeployment, *, is_rebuilt: bool) -> frozenset[str]:
    """Return the existing nodes that are removed. If the lab `is_rebuilt`, these are all nodes."""
    node_names = frozenset(node.name for node in deployment.inventory.nodes) if deployment.inventory else frozenset()
    return node_names if is_rebuilt else node_names - set(machine_names(deployment))


def _plan(watch: Watcher, lab: SimulatedLab, proposal: LocalProposal) -> list[str]:
    """Plan the changes of the proposal, and build nothing. Return the addresses of nodes that do not answer and are replaced.

    If planning a new lab fails, everything of the lab is removed.
    """
    try:
        lab.terraform.prepare(watch)  # waits for the Terraform process of a killed command, which may still complete a node
        sick = [] if proposal.fresh else lab.sick()
        proposal.changes = lab.terraform.plan(watch, replace=sick)
    except BaseException:
        if proposal.fresh:
            lab.terraform.discard_if_empty()
        raise
    return sick


def _check_count(module: Module, nodes: int | None) -> None:
    max_nodes = module.lab.local.max_nodes
    if nodes is not None and not 1 <= nodes <= max_nodes:
        raise UsageError(
            f"--nodes {nodes}: module {module.id} accepts 1 to {max_nodes} nodes",
            hint=f"gpucourse deploy {module.id} --nodes {module.lab.local.nodes}",
        )


def _check_open_files(deployment: LocalDeployment) -> None:
    """Check that the system's limit of open files is high enough for the process that hosts the nodes.

    The process raises its own limit up to the system's. Raises MissingError if the system's limit is too low.
    """
    count, file_limit = len(machine_names(deployment)), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    file_count = count * _FILES_OF_A_NODE + _FILES_OF_A_HOST
    if file_limit == resource.RLIM_INFINITY or file_count <= file_limit:
        return
    fewer = max(1, (file_limit - _FILES_OF_A_HOST) // _FILES_OF_A_NODE - deployment.has_slurm)
    raise MissingError(
        f"{count} simulated nodes need {file_count} open files, but the limit here is {file_limit} (ulimit -Hn)",
        hint=f"raise that limit, or: gpucourse deploy {deployment.module} --nodes {fewer}",
    )
