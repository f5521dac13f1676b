"""The current state of labs on AWS, and when they will end. The account and the nodes are queried, not this computer's
records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import partial

from gpucourse.aws import instances, schedule
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError
from gpucourse.labs.aws import ledger, node_files, termination_reason
from gpucourse.labs.aws.account import check_account
from gpucourse.labs.results import Health, LabHealth
from gpucourse.model.cloud import CloudInstance, Idle
from gpucourse.model.deployment import AwsDeployment, NodeHealth
from gpucourse.model.node import Node
from gpucourse.parallel import try_all
from gpucourse.ports import Transport
from gpucourse.workspace import regions
from gpucourse.workspace.paths import WorkspacePaths

WITHIN_S = 12.0
NODES_WITHIN_S = 4.0
Look = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """One lab on AWS. Amounts are in USD; times are ISO 8601 in UTC.

    `instances`: the id of each node's instance.
    `unknown`: why the account could not be queried; no node then counts as healthy.
    `ended`: the nodes that ended by themselves, and why.
    `idle`: the last reports of the idle agents, from the nodes that answered in time.
    `backstop`: when AWS itself ends the lab, or why it will not.
    """

    nodes: list[NodeHealth]
    instances: dict[str, str]
    expires: str
    seconds_left: float
    cost_usd: Decimal
    usd_per_hour: Decimal | None
    unknown: str = ""
    stopped: bool = False
    ended: list[str] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    backstop: str = ""


def health(context: Context, labs: Sequence[AwsDeployment], *, ask_nodes: bool) -> Health:
    """Query the account about these labs, with all requests in parallel. Without labs, only read the ledger.

    Never raises for an error that AWS returns: the labs are then `unknown`. With `ask_nodes`, also query the idle agents, over
    SSH. Do not set it often: an idle agent mistakes the connection for a person at work.
    """
    if not labs:
        return Health(warnings=_warn_of_billed(context.paths))
    places = dict.fromkeys([*(lab.cloud.region for lab in labs), *regions.read_used_regions(context.paths)])
    accounts = {region: Account(region, context.environ) for region in places}
    looks: dict[tuple[str, str], Look] = {}
    for region, account in accounts.items():
        looks["instances", region] = partial(instances.find, account, course=context.workspace.id)
    for lab in labs:
        cloud = lab.cloud
        account = accounts[cloud.region]
        looks["account", lab.stack] = partial(check_account, account, lab)
        looks["backstop", lab.stack] = partial(schedule.read_scheduled_ends, account, stack=lab.uid)
        looks["bill", lab.stack] = partial(ledger.settle, context.paths, account, lab.uid, expires=cloud.expires)
    answers = dict(zip(looks, try_all(list(looks.values()), limit=len(looks), within_s=WITHIN_S), strict=True))
    views = {lab.stack: _make_outlook(context.paths, lab, answers) for lab in labs}
    if ask_nodes:
        _ask_nodes(context.transport, labs, views)
    recorded = {lab.uid for lab in labs}
    all_instances = [instance for region in places for instance in _read_instances(answers["instances", region])]
    return Health(
        labs={stack: LabHealth(nodes=outlook.nodes, outlook=outlook) for stack, outlook in views.items()},
        warnings=[
            f"{vm.id} ({vm.instance_type}, {vm.state}, {vm.region}) belongs to this workspace, but no record lists it: "
            "gpucourse leaks"
            for vm in all_instances
            if vm.alive and vm.stack not in recorded
        ],
    )


def _warn_of_billed(paths: WorkspacePaths) -> list[str]:
    """Return a warning about instances that still cost money according to the ledger although no lab is on record."""
    spans = ledger.read(paths.ledger).open()
    items = ", ".join(span.charge.item for span in spans if span.charge.kind == "instance")
    return [f"no lab is on record, but the ledger says that these cost money: {items}. Check: gpucourse leaks"] if items else []


def _make_outlook(paths: WorkspacePaths, lab: AwsDeployment, answers: dict[tuple[str, str], object]) -> Outlook:
    cloud = lab.cloud
    answer = answers["instances", cloud.region]
    trouble = next((item for item in (answers["account", lab.stack], answer) if isinstance(item, GpucourseError)), None)
    lab_instances = [item for item in _read_instances(answer) if item.stack == lab.uid]
    alive = [item for item in lab_instances if item.alive]
    remaining_s = (datetime.fromisoformat(cloud.expires) - ledger.now()).total_seconds()
    return Outlook(
        nodes=_list_unknown(lab) if trouble else _check_nodes(lab, lab_instances),
        instances={item.node: item.id for item in alive},
        expires=cloud.expires,
        seconds_left=remaining_s,
        cost_usd=ledger.sum_costs(paths, lab.uid),
        usd_per_hour=ledger.per_hour(paths, lab),
        unknown=trouble.what if trouble else "",
        stopped=bool(alive) and not trouble and all(item.state in {"stopped", "stopping"} for item in alive),
        ended=[]
        if trouble
        else [
            termination_reason.describe_termination(item, cloud.expires)
            for item in termination_reason.find_lost_instances(lab, lab_instances).values()
        ],
        backstop="" if trouble else _describe_backstop(answers["backstop", lab.stack], cloud.backstop),
    )


def _list_names(lab: AwsDeployment, instances: Sequence[CloudInstance]) -> list[str]:
    return [node.name for node in lab.nodes] or sorted({instance.node for instance in instances})


def _list_unknown(lab: AwsDeployment) -> list[NodeHealth]:
    return [NodeHealth(node=name, healthy=False, detail="AWS does not say", known=False) for name in _list_names(lab, ())]


def _check_nodes(lab: AwsDeployment, instances: Sequence[CloudInstance]) -> list[NodeHealth]:
    alive = {instance.node: instance for instance in instances if instance.alive}
    return [_check_node(lab, name, alive.get(name)) for name in _list_names(lab, instances)]


def _check_node(lab: AwsDeployment, name: str, instance: CloudInstance | None) -> NodeHealth:
    if instance is None:
        return NodeHealth(node=name, healthy=False, detail="the instance no longer exists")
    node = lab.inventory.find_node(name) if lab.inventory else None
    if instance.state == "running" and node and instance.address != node.address:
        detail = f"has another address now, {instance.address}: gpucourse start {lab.module}"
        return NodeHealth(node=name, healthy=False, detail=detail)
    detail = f"{instance.state} (spot)" if instance.market == "spot" else instance.state
    return NodeHealth(node=name, healthy=instance.state == "running", detail=detail)


def _describe_backstop(answer: object, recorded: str) -> str:
    if isinstance(answer, dict) and answer:
        return f"AWS itself ends it at {min(answer.values()):%Y-%m-%d %H:%M} UTC"
    if isinstance(answer, GpucourseError):
        return f"not known: {answer.what}"
    return f"none: {recorded}" if recorded else "none: its schedules are gone"


def _read_instances(answer: object) -> list[CloudInstance]:
    return answer if isinstance(answer, list) else []


def _ask_nodes(transport: Transport, labs: Sequence[AwsDeployment], views: dict[str, Outlook]) -> None:
    """Add the last reports of the idle agents to `views`. Nodes that do not answer in time are left out."""
    running = [
        (lab.stack, node)
        for lab in labs
        for node in lab.nodes
        if any(health.node == node.name and health.healthy for health in views[lab.stack].nodes)
    ]
    answers = try_all([partial(_ask, transport, node) for _, node in running], limit=len(running), within_s=NODES_WITHIN_S)
    for (stack, _), answer in zip(running, answers, strict=True):
        if isinstance(answer, Idle):
            views[stack].idle.append(answer)


def _ask(transport: Transport, node: Node) -> Idle | None:
    link = transport.connect(node, timeout_s=NODES_WITHIN_S)
    try:
        return node_files.idle(link)
    finally:
        link.close()
