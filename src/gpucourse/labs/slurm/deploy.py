"""`deploy --target slurm`: examine a cluster, choose the resources that jobs request, and test them with one short job.

Nothing is installed unless the learner asks for it, and nothing keeps running on the login node.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from gpucourse.context import Context
from gpucourse.errors import GpucourseError, Interrupted, MissingError, StackBusy, UsageError, suggest
from gpucourse.labs.deploy import make_record, record_outcome
from gpucourse.labs.request import DeployRequest
from gpucourse.labs.results import BuildResult, LabProposal
from gpucourse.labs.slurm import install, probe
from gpucourse.labs.slurm.facts import look
from gpucourse.labs.slurm.lab import SlurmLab
from gpucourse.model.deployment import SlurmDeployment
from gpucourse.model.event import NodeEvent, stage
from gpucourse.model.node import Inventory, Node
from gpucourse.model.slurm_facts import PartitionFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings, merge, read_words
from gpucourse.remote import host_probe
from gpucourse.remote.fleet import Fleet
from gpucourse.remote.ssh_config import find_ssh_route
from gpucourse.remote.transport import choose_way
from gpucourse.runs.connect import Connections, make_fleet
from gpucourse.storage import find_login
from gpucourse.units import format_bytes
from gpucourse.workspace import deployments
from gpucourse.workspace.exercises import all_names, ensure_copies
from gpucourse.workspace.lock import hold_lock

if TYPE_CHECKING:
    from gpucourse.model.manifest import Module

T = TypeVar("T")


@dataclass(kw_only=True)
class SlurmProposal(LabProposal):
    """An examined cluster, and the partition to which the probe is submitted.

    `node`: the login node.
    `probe_nodes`: the maximum number of compute nodes that the probe examines.
    `is_new`: whether the lab does not exist yet; if the probe then fails, everything of the lab is removed.
    `install`: whether to make a virtual environment with the course's packages on the cluster.
    """

    deployment: SlurmDeployment
    lab: SlurmLab
    fleet: Fleet
    node: Node
    partition: PartitionFacts
    probe_nodes: int
    is_new: bool
    install: bool


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[SlurmProposal]:
    """Examine the cluster, and yield the proposal to use it as a module's lab. Nothing is changed there.

    Raises UsageError, MissingError if the cluster lacks something that the learner named, UnreachableError, and
    InfrastructureError if Slurm does not answer.
    """
    start_s = time.monotonic()
    module = context.catalog.module(request.module)
    stack = deployments.stack_name(module.id, "slurm")
    with context.lock(stack, f"deploy {module.id}"):
        existing = deployments.load_as(context.paths, stack, SlurmDeployment)
        typed = merge(existing.typed if existing else SlurmSettings(), _read_typed(request))
        settings = read_settings(context, request, typed)
        typed = replace(typed, login=settings.login)  # a name in gpucourse.yaml may later mean another cluster
        _check_same_cluster(module, existing, settings)
        with ExitStack() as connections:
            with stage(context.watch, "look", "examining the cluster"):
                node, fleet = enter_cluster(context, request, settings, key=_find_key(existing))
                facts = look(connections.enter_context(fleet).link(node), settings)
            settings, partition = choose(module, settings, facts, nodes=request.nodes or 1, typed=typed)
            deployment = existing or make_record(context.workspace, SlurmDeployment, module, stack, template="slurm", nodes=1)
            changes = [] if existing and existing.up else [("create", node.label)]
            candidate = replace(
                deployment,
                typed=typed,
                settings=settings,
                facts=facts,
                run_nodes=request.nodes or deployment.run_nodes,
                shared=facts.folder,
                former_folders=_list_former(existing, facts.folder),
                inventory=Inventory(stack=stack, nodes=(node,)),
            )
            lab = SlurmLab(context.paths, context.transport, context.paths.stack(stack), candidate)
            proposal = SlurmProposal(
                deployment=candidate,
                lab=lab,
                fleet=fleet,
                node=node,
                partition=partition,
                probe_nodes=candidate.run_nodes or max((exercise.launch.nodes for exercise in module.exercises), default=1),
                is_new=existing is None,
                install=request.install,
                changes=changes,
                start_s=start_s,
            )
            if request.dry_run:
                proposal.planned = proposal.make_result(dry_run=True)
            yield proposal


def build(context: Context, proposal: SlurmProposal) -> BuildResult:
    """Record the lab, submit the probe, wait up to a minute for its result, and return the lab.

    If the probe shows that jobs cannot work there, a new lab is removed again and the error is raised: MissingError without
    torch, InfrastructureError if a compute node does not see the folder.
    """
    deployment, lab = proposal.deployment, proposal.lab
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))
    try:
        with record_outcome(context.paths, deployment):
            lab.up(proposal.fleet)
            with make_fleet(context.transport, deployment, (proposal.node,), scheduled=True) as fleet:
                _prove(context, proposal, fleet)
            probe.check(deployment)
    except GpucourseError as error:
        if proposal.is_new and not isinstance(error, Interrupted):
            _remove(context, proposal)
        raise
    return BuildResult(labs=[proposal.make_result()])


def _prove(context: Context, proposal: SlurmProposal, fleet: Fleet) -> None:
    deployment, link = proposal.deployment, fleet.link(proposal.node)
    partition, nodes, ports = proposal.partition, proposal.probe_nodes, context.settings.ports
    if proposal.install:
        with stage(context.watch, "install", "creating an environment with torch on the cluster"):
            deployment.environment = _try_accounts(
                context, proposal, lambda: install.install(context, link, deployment, partition)
            )
    deployment.probe = _try_accounts(
        context, proposal, lambda: probe.submit(link, deployment, partition, nodes=nodes, ports=ports)
    )
    deployments.save(context.paths, deployment)
    with stage(context.watch, "probe", f"examining a compute node (job {deployment.probe.job})"):
        deployment.probe = probe.wait(link, deployment, context.stop)
    deployment.lacks = "" if deployment.probe.state == "failed" else describe_lacks(deployment)


def _try_accounts(context: Context, proposal: SlurmProposal, submit: Callable[[], T]) -> T:
    """Submit a job with `submit`, and return its result. If the account was not typed and Slurm refuses the job, try the
    learner's other accounts.

    Raises the error of the first account if no account is accepted.
    """
    deployment = proposal.deployment
    named = merge(context.settings.slurm.choose(login=deployment.settings.login), deployment.typed).account
    accounts = [named] if named else list_accounts(deployment.facts, proposal.partition) or [""]
    errors: list[GpucourseError] = []
    for account in accounts:
        deployment.settings = replace(deployment.settings, account=account)
        try:
            return submit()
        except MissingError as error:  # Slurm may accept the job for another account
            errors.append(error)
    raise errors[0]


def read_probe(context: Context, deployment: SlurmDeployment, connections: Connections) -> None:
    """Read the result of a probe that was still waiting, and store it, unless another command is changing the lab.

    Raises UnreachableError if the login node does not answer.
    """
    if deployment.probe.state != "pending" or deployment.inventory is None:
        return
    with suppress(StackBusy), hold_lock(context.paths.lock(deployment.stack), "status", wait_s=0.0):
        if deployments.load(context.paths, deployment.stack) != deployment:
            return
        fleet = connections.reach(deployment, deployment.inventory.nodes, scheduled=True)
        deployment.probe = probe.wait(fleet.link(deployment.inventory.head), deployment, context.stop, wait_s=0.0)
        deployment.lacks = describe_lacks(deployment)
        deployments.save(context.paths, deployment)


def describe_lacks(deployment: SlurmDeployment) -> str:
    """Return what is missing in the lab according to its probe, and what to type. The result is empty if nothing is missing."""
    result = deployment.probe
    if result.state == "pending":
        start = f", expected to start at {result.expected} by the cluster's clock" if result.expected else ""
        return f"not tested yet: the probe (job {result.job}) is waiting in the queue ({result.reason or 'PENDING'}{start})"
    if result.state == "failed":
        return f"{result.problem}: {result.hint}"
    if result.state == "passed" and not result.gpu:
        return f"torch sees no GPU on {result.nodes[0]}, so results do not count as measured on a GPU"
    return ""


def choose(
    module: Module, settings: SlurmSettings, facts: SlurmFacts, *, nodes: int, typed: SlurmSettings
) -> tuple[SlurmSettings, PartitionFacts]:
    """Return the settings with the account for jobs, and the partition for jobs with a GPU.

    `typed`: the settings that were typed. The commands in hints repeat them.

    Raises MissingError if the cluster lacks the partition, the account, the GPU or the number of nodes.
    """
    check_names(settings, facts, module.id, typed)
    partition = facts.find_partition(settings.partition.partition(",")[0]) if settings.partition else None
    partition = partition or facts.choose_partition(gpus=1, gpu=settings.gpu, account=settings.account)
    if partition is None and not settings.gpu:
        partition = facts.choose_partition(gpus=0, account=settings.account)
    if partition is None:
        raise _make_no_partition_error(settings, facts, module.id, typed)
    _check_access(settings, facts, partition, module.id, typed)
    count = partition.count_nodes(gpus=partition.gpus, gpu=settings.gpu)
    allowed = count if partition.max_nodes is None else min(count, partition.max_nodes)
    if nodes > max(1, allowed):
        gpus = 1 if partition.gpus else 0
        other = facts.choose_partition(gpus=gpus, nodes=nodes, gpu=settings.gpu, account=settings.account)
        is_elsewhere = other is not None and other is not partition
        again = replace(typed, partition=other.name) if other is not None and is_elsewhere else typed
        kind = f" with the GPU {settings.gpu}" if settings.gpu else ""
        raise MissingError(
            f"{nodes} nodes are needed, but a job in the partition {partition.name} can have {allowed}{kind}",
            hint=f"{again.write_command(module.id)} --nodes {nodes if is_elsewhere else max(1, allowed)}",
        )
    if not settings.account:
        settings = replace(settings, account=next(iter(list_accounts(facts, partition)), ""))
    return settings, partition


def _make_no_partition_error(settings: SlurmSettings, facts: SlurmFacts, module: str, typed: SlurmSettings) -> MissingError:
    if settings.gpu:
        types = ", ".join(dict.fromkeys(kind for partition in facts.partitions for kind in partition.gpu_types))
        return MissingError(
            f"no partition that is open to you has a GPU of the type {settings.gpu}; the cluster has: {types or 'no types'}",
            hint=f"{replace(typed, gpu='TYPE').write_command(module)}, or without --gpu",
        )
    names = ", ".join(partition.name for partition in facts.partitions) or "none"
    return MissingError(
        f"no partition of the cluster is open to you; it has: {names}. Your accounts: {', '.join(facts.accounts) or 'none'}",
        hint="ask the administrator which partition and account are yours, then "
        + replace(typed, partition="NAME", account="NAME").write_command(module),
    )


def _check_access(
    settings: SlurmSettings, facts: SlurmFacts, partition: PartitionFacts, module: str, typed: SlurmSettings
) -> None:
    """Check that the partition accepts jobs of this account and has the type of GPU. Raises MissingError."""
    accounts = [settings.account] if settings.account else list(facts.accounts)
    gpus = 1 if partition.gpus else 0
    if "associations" in facts.enforced and not partition.admits(accounts):
        other = facts.choose_partition(gpus=gpus, gpu=settings.gpu, account=settings.account)
        owners = f" ({', '.join(partition.accounts)})" if partition.accounts else ""
        if account := next(iter(list_accounts(facts, partition)), ""):
            again = replace(typed, account=account)
        else:
            again = replace(typed, partition=other.name) if other else replace(typed, account="NAME")
        raise MissingError(
            f"the partition {partition.name} is only for other accounts{owners}, not for {' or '.join(accounts)}",
            hint=again.write_command(module),
        )
    if not partition.open:
        raise MissingError(
            f"the partition {partition.name} is down: it accepts no jobs",
            hint=replace(typed, partition="NAME").write_command(module),
        )
    if settings.gpu and partition.gpus and settings.gpu not in partition.gpu_types:
        types = ", ".join(partition.gpu_types) or "no types known to Slurm"
        raise MissingError(
            f"the partition {partition.name} has no GPU of the type {settings.gpu}; it has: {types}",
            hint=replace(typed, gpu=next(iter(partition.gpu_types), "")).write_command(module),
        )


def check_names(settings: SlurmSettings, facts: SlurmFacts, module: str, typed: SlurmSettings) -> None:
    """Check that the cluster has the partitions, the account and the QoS of the settings. Raises MissingError.

    `module`, `typed`: the words that the command in the hint repeats.
    """
    names = [partition.name for partition in facts.partitions]
    for key in ("partition", "cpu_partition"):
        for name in filter(None, getattr(settings, key).split(",")):
            if name not in names:
                best = facts.choose_partition(gpus=int(key == "partition"), account=settings.account) or facts.partitions[0]
                raise MissingError(
                    f"the cluster has no partition '{name}'; it has: {', '.join(names)}.{suggest(name, names)}",
                    hint=(
                        replace(typed, partition=best.name) if key == "partition" else replace(typed, cpu_partition=best.name)
                    ).write_command(module),
                )
    if settings.account and "associations" in facts.enforced and facts.accounts and settings.account not in facts.accounts:
        raise MissingError(
            f"you have no account '{settings.account}' on the cluster; yours: {', '.join(facts.accounts)}."
            f"{suggest(settings.account, facts.accounts)}",
            hint=replace(typed, account=_suggest_account(settings, facts)).write_command(module),
        )
    if settings.qos and "qos" in facts.enforced and facts.qos and settings.qos not in facts.qos:
        raise MissingError(
            f"you may not use the QoS '{settings.qos}'; yours: {', '.join(facts.qos)}.{suggest(settings.qos, facts.qos)}",
            hint=replace(typed, qos=facts.qos[0]).write_command(module),
        )


def _suggest_account(settings: SlurmSettings, facts: SlurmFacts) -> str:
    """Return one of the learner's accounts that can use the partition in the settings, or a partition with GPUs."""
    partition = facts.find_partition(settings.partition) or facts.choose_partition(gpus=1, gpu=settings.gpu)
    return next(iter(list_accounts(facts, partition) if partition else ()), facts.accounts[0])


def list_accounts(facts: SlurmFacts, partition: PartitionFacts) -> list[str]:
    """Return the learner's accounts that may use the partition, the default one first. Return an empty list if the cluster has
    no accounting."""
    return [account for account in facts.accounts if partition.admits([account])]


def _read_typed(request: DeployRequest) -> SlurmSettings:
    """Return the settings that were typed for this deploy. Raises UsageError."""
    if request.nodes is not None and request.nodes < 1:
        hint = f"gpucourse deploy {request.module} --target slurm --nodes 1"
        raise UsageError(f"--nodes {request.nodes}: at least one node is needed", hint=hint)
    if len(request.gpu) > 1:
        raise UsageError(
            "a lab on a Slurm cluster has one type of GPU",
            hint=f"gpucourse deploy {request.module} --target slurm --gpu {request.gpu[0]}",
        )
    try:
        typed = SlurmSettings(
            login=request.login,
            partition=request.partition,
            account=request.account,
            qos=request.qos,
            gpu=request.gpu[0] if request.gpu else "",
        )
    except ValueError as error:
        name, _, form = str(error).partition(": ")
        raise UsageError(
            f"--{name}: {form}", hint=f"gpucourse deploy {request.module} --target slurm --login me@cluster"
        ) from error
    return merge(typed, read_words(request.slurm))


def read_settings(context: Context, request: DeployRequest, typed: SlurmSettings | None = None) -> SlurmSettings:
    """Return the settings of the requested cluster: those in gpucourse.yaml, overridden by the typed ones.

    `typed`: the settings that were typed for this lab; by default, those in the request. Raises UsageError.
    """
    typed = _read_typed(request) if typed is None else typed
    return merge(context.settings.slurm.choose(cluster=request.cluster, login=typed.login), typed)


def enter_cluster(context: Context, request: DeployRequest, settings: SlurmSettings, *, key: str = "") -> tuple[Node, Fleet]:
    """Connect to the login node. Return it as the only node of the lab, with the open connection.

    `key`: the private key of an earlier deploy, used if the request names none.

    Raises UsageError if no cluster is named, MissingError if the login node has no Python 3.8 or newer, and UnreachableError.
    """
    if not settings.login and shutil.which("sbatch", path=context.environ.get("PATH")) is None:
        raise UsageError(
            "no cluster is named, and this computer has no Slurm",
            hint=f"gpucourse deploy {request.module} --target slurm --login me@cluster, or slurm: {{login: me@cluster}} in "
            "gpucourse.yaml",
        )
    start_s = time.monotonic()
    node = _describe_login(context, settings.login, str(request.key.expanduser().absolute()) if request.key else key)
    link = context.transport.connect(node)
    try:
        python = context.settings.host_pythons.get(node.typed, context.settings.node_python)
        facts = host_probe.look(link, (python,) if python else host_probe.PYTHONS)
    except BaseException:
        link.close()
        raise
    detail = f"{facts.hostname}, {facts.python} ({facts.version}), {format_bytes(facts.disk_free_bytes)} free"
    context.watch(NodeEvent(node=node.typed, step="look", ok=True, seconds=time.monotonic() - start_s, detail=detail))
    link.node = replace(node, python=facts.python)
    return link.node, Fleet(context.transport, [link.node], links={node.name: link})


def _describe_login(context: Context, login: str, key: str) -> Node:
    """Return the login node, before any fact about it is known. Without a login, it is this computer."""
    route = find_ssh_route(login, context.environ) if login else None
    return Node(
        name="login",
        role="head",
        address=route.address if route else "127.0.0.1",
        port=route.port if route else 22,
        private_address="",
        user=route.user if route else find_login(),
        gpus=0,
        instance_type="a login node",
        python="",
        mode="slurm",
        key=key,
        typed=login or socket.gethostname(),
        way=choose_way(login),
    )


def _find_key(existing: SlurmDeployment | None) -> str:
    """Return the private key with which a lab was deployed, or an empty string."""
    return existing.inventory.head.key if existing is not None and existing.inventory is not None else ""


def _check_same_cluster(module: Module, existing: SlurmDeployment | None, settings: SlurmSettings) -> None:
    """Check that an existing lab stays on its cluster. Raises UsageError if it does not."""
    if existing is not None and existing.inventory is not None and existing.settings.login != settings.login:
        raise UsageError(
            f"the lab of module {module.id} is on {existing.settings.login or 'this computer'}, not on "
            f"{settings.login or 'this computer'}",
            hint=f"gpucourse destroy {module.id}, then deploy again",
        )


def _list_former(existing: SlurmDeployment | None, folder: str) -> list[str]:
    """Return the folders of earlier deploys that may still contain files of the lab, without the current folder."""
    if existing is None or existing.inventory is None:
        return []
    folders = dict.fromkeys([*existing.former_folders, existing.shared])
    return [former for former in folders if former != folder]


def _remove(context: Context, proposal: SlurmProposal) -> None:
    """Remove a new lab whose probe failed. If something of it cannot be removed, keep the lab's record for `destroy`."""
    with suppress(GpucourseError), proposal.lab:
        proposal.lab.down(lambda _event: None)
        if not proposal.lab.scan_leftovers():
            deployments.drop(context.paths, proposal.deployment.stack)
