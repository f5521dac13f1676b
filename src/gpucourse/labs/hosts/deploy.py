"""`deploy --target hosts`: examine machines that exist already, record them, and prove that they can work together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, InfrastructureError, UsageError
from gpucourse.labs import collective_check
from gpucourse.labs.collect_before_destroy import collect_runs, find_ending
from gpucourse.labs.deploy import make_record, record_outcome
from gpucourse.labs.hosts.addresses import find_private_addresses
from gpucourse.labs.hosts.lab import HostsLab, open_hosts
from gpucourse.labs.hosts.nodes import EnteredHost, enter
from gpucourse.labs.readiness import write_ssh_files
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, LabProposal
from gpucourse.limits import MAX_NODES
from gpucourse.model.deployment import HostsDeployment
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.model.manifest import Module
from gpucourse.model.node import Inventory, Node
from gpucourse.remote.fleet import Fleet
from gpucourse.units import format_bytes
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies

if TYPE_CHECKING:
    from gpucourse.workspace.settings import Settings


MIN_FREE_BYTES = 1 << 30
MAX_SKEW_S = 2.0


@dataclass(kw_only=True)
class HostsProposal(LabProposal):
    """Examined machines that can be used, with connections to them.

    `meet`: a free port of the first machine that the others can reach; 0 if there is only one machine.
    """

    fleet: Fleet
    deployment: HostsDeployment
    lab: HostsLab
    entered: list[EnteredHost]
    nodes: list[Node]
    meet: int


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[HostsProposal]:
    """Examine the machines, and yield the proposal to use them as a module's lab. Nothing is installed or left on them yet.

    If the request has no `hosts`, use the recorded machines, otherwise those in the settings. Raises UsageError (including for
    a login node of a Slurm cluster), MissingError (including UnknownHosts), UnreachableError, and InfrastructureError if the
    machines cannot reach each other.
    """
    start_s = time.monotonic()
    module = context.catalog.module(request.module)
    stack = deployments.stack_name(module.id, "hosts")
    with context.lock(stack, f"deploy {module.id}"):
        existing = deployments.load_as(context.paths, stack, HostsDeployment)
        former_hosts = existing.variables.hosts if existing else []
        names = _choose_hosts(context.settings, module, request.hosts or former_hosts, request.nodes)
        if module.lab.scheduler == "slurm":
            raise _refuse_slurm(module, names, has_lab=existing is not None)
        former = existing.inventory.nodes if existing and existing.inventory else ()
        with stage(context.watch, "look", "examining the machines"):
            entered, fleet = enter(context, names, key=request.key, trust=request.trust, former=former)
        with fleet:
            if not request.on_login_node:
                _refuse_login_nodes(module, entered, former)
            _warn(context.watch, entered)
            with stage(context.watch, "sight", "finding how they reach each other"):
                nodes, meet = find_private_addresses(context, entered, fleet)
            fleet.describe_again(nodes)
            deployment = existing or make_record(
                context.workspace, HostsDeployment, module, stack, template="hosts", nodes=len(nodes)
            )
            deployment.nodes_wanted, deployment.variables.hosts = len(nodes), names
            lab = HostsLab(context.paths, context.transport, context.paths.stack(stack), deployment, tuple(nodes))
            removed_nodes = _find_leaving(deployment, nodes)
            proposal = HostsProposal(
                fleet=fleet,
                deployment=deployment,
                lab=lab,
                entered=entered,
                nodes=nodes,
                meet=meet,
                changes=lab.plan(),
                start_s=start_s,
                removed_nodes=removed_nodes,
                ends=find_ending(context.paths, deployment, removed_nodes),
            )
            if request.dry_run:
                proposal.planned = proposal.make_result(dry_run=True)
            yield proposal


def build(context: Context, proposal: HostsProposal) -> BuildResult:
    """Make a lab of the proposed machines, and return it.

    Raises UnreachableError, and InfrastructureError if the machines cannot work together.
    """
    deployment, lab, nodes = proposal.deployment, proposal.lab, proposal.nodes
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
    with record_outcome(context.paths, deployment):
        if proposal.removed_nodes:
            collect_runs(context, deployment, discard=False, removed_nodes=proposal.removed_nodes)
        _release(context, deployment, nodes)
        deployment.inventory = Inventory(stack=deployment.stack, nodes=tuple(nodes))  # before anything is left on them
        deployments.save(context.paths, deployment)
        lab.up(proposal.fleet)
        write_ssh_files(context, lab.paths, deployment.inventory)
        if len(nodes) > 1 and all(host.facts.torch for host in proposal.entered):
            with stage(context.watch, "meet", "summing a tensor over all the machines"):
                _meet(context, nodes, proposal)
    return BuildResult(labs=[proposal.make_result()])


def _choose_hosts(settings: Settings, module: Module, hosts: Sequence[str], nodes: int | None) -> list[str]:
    names = [host.strip() for host in (hosts or settings.hosts) if host.strip()]
    example = f"gpucourse deploy {module.id} --target hosts --hosts me@gpu1,me@gpu2"
    if not names:
        raise UsageError("no machines are named", hint=f"{example}, or hosts in gpucourse.yaml")
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"named twice: {', '.join(duplicates)}", hint=example)
    if nodes is not None and not 1 <= nodes <= len(names):
        raise UsageError(f"--nodes {nodes}: {len(names)} machines are named", hint=example)
    selection = names[:nodes] if nodes else names
    if len(selection) > MAX_NODES:
        raise UsageError(f"{len(selection)} machines: a lab may have at most {MAX_NODES}", hint=example)
    return selection


def _refuse_slurm(module: Module, names: Sequence[str], *, has_lab: bool) -> UsageError:
    """Return the error for a module that hands its work to Slurm: plain machines do not run Slurm, and clusters have their own
    target."""
    first = f"gpucourse destroy {module.id}, then " if has_lab else ""
    return UsageError(
        f"module {module.id} hands its work to Slurm, but --target hosts computes on the machines themselves",
        hint=f"if {names[0]} is the login node of a cluster: {first}gpucourse deploy {module.id} --target slurm "
        f"--login {names[0]}",
    )


def _refuse_login_nodes(module: Module, entered: Sequence[EnteredHost], former: Sequence[Node]) -> None:
    """Check that no machine is a login node of a Slurm cluster, because runs of this lab compute on the machines themselves.

    Login nodes that are already in the lab are allowed. Raises UsageError.
    """
    machines = {_machine(node) for node in former}
    login_nodes = [host.node.typed for host in entered if host.facts.login_node and _machine(host.node) not in machines]
    if login_nodes:
        raise UsageError(
            f"{login_nodes[0]} is a login node of a Slurm cluster, and runs of this lab would compute on it",
            hint=f"make them jobs of the cluster: gpucourse deploy {module.id} --target slurm --login {login_nodes[0]}; if you "
            "may compute on that machine: --on-login-node",
        )


def _warn(watch: Watcher, entered: Sequence[EnteredHost]) -> None:
    """Report problems that do not prevent the lab but will affect its results."""
    for host in entered:
        facts = host.facts
        if not facts.torch:
            text = f"{host.node.typed}: no torch was found for any of its Pythons; exercises that need it will not run there. "
            text += "If it has one, name its Python: node_python in gpucourse.yaml"
            watch(Note(text=text, level="warning"))
        if facts.disk_free_bytes < MIN_FREE_BYTES:
            text = f"{host.node.typed}: only {format_bytes(facts.disk_free_bytes)} free in {facts.home[0]}"
            watch(Note(text=text, level="warning"))
        if abs(facts.clock_skew_s) > MAX_SKEW_S:
            way = "ahead of" if facts.clock_skew_s > 0 else "behind"
            text = f"{host.node.typed}: its clock is {abs(facts.clock_skew_s):.0f} s {way} this computer's"
            watch(Note(text=text, level="warning"))


def _find_leaving(deployment: HostsDeployment, nodes: Sequence[Node]) -> frozenset[str]:
    """Return the names of the nodes that now refer to another machine or to none.

    The runs on the former machines are found by these names.
    """
    machines_by_name = {node.name: _machine(node) for node in nodes}
    former = deployment.inventory.nodes if deployment.inventory else ()
    return frozenset(node.name for node in former if machines_by_name.get(node.name) != _machine(node))


def _machine(node: Node) -> tuple[str, str, int]:
    return node.user, node.address, node.port


def _release(context: Context, deployment: HostsDeployment, nodes: Sequence[Node]) -> None:
    """Remove this program's files from the machines that are no longer among `nodes`.

    If a machine does not answer, it is forgotten, and a warning names it.
    """
    machines = {_machine(node) for node in nodes}
    if deployment.inventory is None:
        return
    for node in deployment.inventory.nodes:
        if _machine(node) in machines:
            continue
        node_deployment = replace(deployment, inventory=replace(deployment.inventory, nodes=(node,)))
        try:
            with open_hosts(context, node_deployment) as lab:
                lab.down(context.watch)
        except GpucourseError as error:
            text = f"{node.user}@{node.address} is no longer part of the lab, and its files may be left there: {error.what}"
            context.watch(Note(text=text, level="warning"))


def _meet(context: Context, nodes: Sequence[Node], proposal: HostsProposal) -> None:
    """Prove that the machines can work together. Raises InfrastructureError."""
    try:
        interface_by_node = _find_interfaces(proposal)
        collective_check.run(context, proposal.fleet, nodes, set(), port=proposal.meet, interface_by_node=interface_by_node)
    except InfrastructureError as error:
        first, last = context.settings.ports
        raise InfrastructureError(
            error.what,
            hint=f"the machines must reach each other's ports {first} to {last} and the free ports above 1024: ask the "
            "administrator of their firewall",
        ) from error


def _find_interfaces(proposal: HostsProposal) -> dict[str, str] | None:
    """Return, for each machine, the interface that has its private address.

    Return None if a machine has no such interface, for example because of NAT.
    """
    interfaces = {
        node.name: interface
        for node, host in zip(proposal.nodes, proposal.entered, strict=True)
        for interface, address in host.facts.addresses.items()
        if address == node.private_address
    }
    return interfaces if len(interfaces) == len(proposal.nodes) else None
