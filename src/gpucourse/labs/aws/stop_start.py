"""`stop` and `start`: pause the instances of a lab, and start them again. Started instances get new addresses, but keep their
host keys."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from decimal import Decimal

from gpucourse.aws import instances
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import CloudError, GpucourseError, MissingError, UsageError
from gpucourse.labs.aws import ledger, termination_reason
from gpucourse.labs.aws.account import account_of, make_pause
from gpucourse.labs.aws.budget import reserve
from gpucourse.labs.aws.change import lock_lab, make_result
from gpucourse.labs.aws.lab import open_cloud, update_addresses
from gpucourse.labs.results import ChangeResult
from gpucourse.model.cloud import CloudInstance
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.event import stage
from gpucourse.ports import Transport
from gpucourse.runs.connect import Connections
from gpucourse.runs.settle import settle
from gpucourse.workspace import deployments, runs

MIN_TIME_LEFT = timedelta(minutes=15)  # a start takes minutes; starting a lab that ends right afterwards wastes money
ASLEEP = {"stopping", "stopped"}


def stop(context: Context, module: str, *, gpu: str | None = None) -> ChangeResult:
    """Stop every instance of a lab, and return the changes. Afterwards, only its disks remain and cost money.

    Raises UsageError for spot instances and while a run is under way, MissingError if no instance is left.
    """
    with lock_lab(context, module, gpu=gpu, verb="stop") as deployment:
        cloud = deployment.cloud
        if cloud.market == "spot":
            raise UsageError(
                f"{deployment.stack} runs on spot instances, which cannot be stopped, only ended",
                hint=f"gpucourse destroy {deployment.module} (outputs are collected first)",
            )
        _check_nothing_runs(context, deployment)
        account = account_of(context.environ, deployment)
        cloud_instances = _find_alive(account, deployment)
        former_rate = ledger.per_hour(context.paths, deployment)
        ids = [instance.id for instance in cloud_instances if instance.state in {"pending", "running"}]
        with stage(context.watch, "stop", f"stopping {', '.join(instance.node for instance in cloud_instances)}"):
            instances.stop(account, ids)
            cloud.stopped, cloud.reservation = True, None
            deployments.save(context.paths, deployment)
            instances.wait(account, [instance.id for instance in cloud_instances], "stopped", sleep=make_pause(context.stop))
        ledger.settle_if_possible(context, account, deployment)
        rate = ledger.per_hour(context.paths, deployment)
        comparison = f" instead of ${former_rate:.2f}" if former_rate and ids else ""
        until = f"{datetime.fromisoformat(cloud.expires):%Y-%m-%d %H:%M} UTC"
        changes = [
            f"{instance.node} ({instance.id}) is stopped" if instance.id in ids else f"{instance.node} was already stopped"
            for instance in cloud_instances
        ]
        changes.append(f"its disks stay and cost ${rate or 0:.2f} an hour{comparison}; the data on the fast local disk is lost")
        return make_result(
            context,
            deployment,
            f"{deployment.stack} is stopped",
            changes,
            warnings=[_describe_pause_end(module, until, has_no_backstop=bool(cloud.backstop))],
            next_command=f"gpucourse start {deployment.module}",
        )


def start(context: Context, module: str, *, gpu: str | None = None, over_budget: bool = False) -> ChangeResult:
    """Start a stopped lab, find its new addresses, wait until it is ready, and return the changes.

    This also repairs a record with old addresses.

    Raises CloudError of kind capacity if AWS has no capacity for the lab now, and the errors of the readiness checks. Raises
    UsageError if the lab has expired. Also raises UsageError if running the lab until its deadline would cost more than the
    budget allows, unless `over_budget` is true.
    """
    from gpucourse.labs.aws.readiness import wait_until_ready

    with lock_lab(context, module, gpu=gpu, verb="start") as deployment:
        cloud = deployment.cloud
        remaining = datetime.fromisoformat(cloud.expires) - ledger.now()
        if remaining < MIN_TIME_LEFT:
            word = "has passed" if remaining < timedelta() else f"is in {remaining.total_seconds() / 60:.0f} minutes"
            raise UsageError(
                f"the deadline of {deployment.stack} {word}: if you started it now, it would soon end itself",
                hint=f"gpucourse extend {module} 2h, then gpucourse start {module}",
            )
        lab = open_cloud(context, deployment)
        account = account_of(context.environ, deployment)
        cloud_instances = _find_alive(account, deployment)
        asleep = any(instance.state in ASLEEP for instance in cloud_instances)
        booking = reserve(
            context,
            deployment,
            per_hour=max(Decimal(cloud.usd_per_hour or 0), ledger.per_hour(context.paths, deployment) or Decimal(0)),
            until=datetime.fromisoformat(cloud.expires),
            remedy="destroy a lab that you no longer need",
            command=f"gpucourse start {module}{f' --gpu {gpu}' if gpu else ''}",
            over_budget=over_budget,
        )
        with booking if asleep else nullcontext():
            try:
                with stage(context.watch, "start", f"starting {', '.join(instance.node for instance in cloud_instances)}"):
                    running = _start_instances(context, account, deployment, cloud_instances)
                former_addresses = {node.name: node.address for node in deployment.nodes}
                if deployment.inventory is not None:  # the same machines with the same disks: their pinned host keys stay
                    deployment.inventory = update_addresses(deployment.inventory, running)
                cloud.stopped = False
                deployments.save(context.paths, deployment)
            finally:  # running instances cost money, even after an interruption or an error
                ledger.settle_if_possible(context, account, deployment)
        cloud.reservation = None  # also the reservation of a killed start: the ledger now has the lab's cost
        late_nodes: list[list[str]] = []

        def move() -> None:
            """Write the deadline immediately, because an old deadline on the disk would end the node five minutes after its
            boot."""
            late_nodes.append(_move_deadline(context.transport, deployment))

        try:
            deployment.inventory = wait_until_ready(context, lab, on_answer=move)
        finally:
            if not late_nodes:  # some nodes do not answer; the others still get the recorded deadline
                move()
        deployments.save(context.paths, deployment, "ready")
        changes = [_describe_address(instance, former_addresses.get(instance.node, "")) for instance in running]
        title = f"{deployment.stack} {'is running again' if asleep else 'was already running'}"
        return make_result(context, deployment, title, changes, warnings=late_nodes[0])


def _describe_pause_end(module: str, until: str, *, has_no_backstop: bool) -> str:
    """Return a sentence that says when a stopped lab ends.

    `has_no_backstop`: no schedule outside the nodes ends the lab. A stopped node does not check its own deadline.
    """
    if has_no_backstop:
        return f"nothing ends it while it is stopped, so its disks cost money until you type gpucourse destroy {module}"
    return f"its deadline still applies: AWS ends it at {until}, even if it is stopped. More time: gpucourse extend {module} 8h"


def _find_alive(account: Account, deployment: AwsDeployment) -> list[CloudInstance]:
    """Return the instances of the lab that still exist. Raises MissingError if none is left."""
    cloud_instances = instances.find(account, stack=deployment.uid)
    alive = [instance for instance in cloud_instances if instance.alive]
    if alive:
        return alive
    cloud = deployment.cloud
    reason = (
        "; ".join(termination_reason.describe_termination(instance, cloud.expires) for instance in cloud_instances)
        or "AWS no longer lists any"
    )
    raise MissingError(
        f"{deployment.stack} has no instance left: {reason}",
        hint=f"rebuild them: gpucourse deploy {deployment.module} --target aws; or clean up: gpucourse destroy "
        f"{deployment.module}",
    )


def _check_nothing_runs(context: Context, deployment: AwsDeployment) -> None:
    for record in runs.list_unfinished(context.paths, deployment.stack):
        with suppress(GpucourseError), Connections(context) as connections:
            if settle(context, record, connections).has_ended:
                continue
        raise UsageError(
            f"run {record.id} is under way on {deployment.stack}",
            hint=f"wait for it (gpucourse logs {record.id} -f), or end it: gpucourse cancel {record.id}",
        )


def _start_instances(
    context: Context, account: Account, deployment: AwsDeployment, cloud_instances: list[CloudInstance]
) -> list[CloudInstance]:
    ids = [instance.id for instance in cloud_instances]
    pause = make_pause(context.stop)
    if stopping := [instance.id for instance in cloud_instances if instance.state == "stopping"]:
        instances.wait(account, stopping, "stopped", sleep=pause)
    try:
        instances.start(account, [instance.id for instance in cloud_instances if instance.state in ASLEEP])
    except CloudError as error:
        if error.kind != "capacity":
            raise
        cloud = deployment.cloud
        error.what = (
            f"AWS has no capacity for {cloud.instance_type} in {cloud.zone} right now, so {deployment.stack} stays stopped"
            f"{ledger.describe_cost_meanwhile(context.paths, deployment)} for its disks"
        )
        error.hint = (
            f"try again later: gpucourse start {deployment.module}; or build it where there is capacity: "
            f"gpucourse destroy {deployment.module}, then gpucourse deploy {deployment.module} --target aws"
        )
        raise
    return instances.wait(account, ids, "running", sleep=pause)


def _move_deadline(transport: Transport, deployment: AwsDeployment) -> list[str]:
    from gpucourse.labs.aws.extend import write_deadline

    moment = datetime.fromisoformat(deployment.cloud.expires)
    failures = write_deadline(transport, deployment, moment)
    return [f"{error.what}: the node may end at its earlier deadline" for error in failures.values()]


def _describe_address(instance: CloudInstance, former: str) -> str:
    address_note = f" (previously {former})" if former and former != instance.address else ""
    return f"{instance.node} ({instance.id}) runs at {instance.address}{address_note}"
