"""Find the instances of a stack or a course by their tags; stop and start them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from gpucourse.aws import tags
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, InfrastructureError
from gpucourse.model.cloud import CloudInstance, Market

ENDED_AT = re.compile(r"\((\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:GMT|UTC)\)")
POLL_S, LISTED_S = 5.0, 90.0


def find(account: Account, *, stack: str | None = None, course: str | None = None) -> list[CloudInstance]:
    """Return every instance with the course's tags in this region, in the order of the node names.

    Instances that ended within about the last hour are included.
    """
    filters = tags.filters(tags.make_project_tags(stack=stack, course=course))
    instances = [
        _parse_instance(instance, account.region)
        for reservation in account.pages("ec2", "describe_instances", "Reservations", Filters=filters)
        for instance in reservation["Instances"]
    ]
    return sorted(instances, key=lambda instance: (instance.stack, instance.node, instance.launched))


def find_nodes(
    account: Account,
    *,
    stack: str,
    names: Iterable[str],
    timeout_s: float = LISTED_S,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[CloudInstance]:
    """Wait until AWS lists an instance for each of these nodes, or time is up; return the live instances of the stack.

    AWS lists a new instance by tag only after a while. An instance that has already ended counts as listed.
    """
    deadline, missing = clock() + timeout_s, set(names)
    while True:
        instances = find(account, stack=stack)
        if missing <= {instance.node for instance in instances} or clock() >= deadline:
            return [instance for instance in instances if instance.alive]
        sleep(POLL_S)


def stop(account: Account, ids: Sequence[str]) -> None:
    """Ask these instances to stop. Their disks remain (and cost money); their public addresses and fast local disks are
    lost."""
    if ids:
        account.call("ec2", "stop_instances", InstanceIds=list(ids))


def start(account: Account, ids: Sequence[str]) -> None:
    """Ask these stopped instances to start. Raises CloudError of kind capacity if AWS has no capacity for them now."""
    if ids:
        account.call("ec2", "start_instances", InstanceIds=list(ids))


def wait(
    account: Account,
    ids: Sequence[str],
    state: str,
    *,
    timeout_s: float = 300.0,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> list[CloudInstance]:
    """Wait until all these instances are in `state`, and return them. Raises InfrastructureError if one ends or time is up.

    Temporary errors of AWS are retried; if one is the last answer before time is up, it is raised.
    """
    deadline = clock() + timeout_s
    while True:
        try:
            instances = _find_by_id(account, ids)
        except CloudError as error:
            if error.kind not in {"throttle", "service"} or clock() >= deadline:
                raise
            sleep(POLL_S)
            continue
        if all(instance.state == state for instance in instances) and len(instances) == len(set(ids)):
            return instances
        dead = [instance for instance in instances if not instance.alive and state not in {"shutting-down", "terminated"}]
        if dead:
            reasons = "; ".join(f"{instance.id} ({instance.reason or 'no reason given'})" for instance in dead)
            raise InfrastructureError(f"these instances ended instead of becoming {state}: {reasons}", hint="gpucourse status")
        if clock() >= deadline:
            reasons = ", ".join(f"{instance.id} is {instance.state}" for instance in instances) or "AWS does not list them"
            raise InfrastructureError(f"not {state} after {timeout_s:.0f} s: {reasons}", hint="check again: gpucourse status")
        sleep(POLL_S)


def survive_power_off(account: Account, ids: Iterable[str]) -> list[str]:
    """Return the instances that EC2 would only stop, not terminate, if they powered themselves off.

    Raises the errors of `Account.call`.
    """
    attribute = "instanceInitiatedShutdownBehavior"
    return [
        instance
        for instance in ids
        if account.call("ec2", "describe_instance_attribute", InstanceId=instance, Attribute=attribute)[
            "InstanceInitiatedShutdownBehavior"
        ]["Value"]
        != "terminate"
    ]


def _find_by_id(account: Account, ids: Sequence[str]) -> list[CloudInstance]:
    try:
        pages = list(account.pages("ec2", "describe_instances", "Reservations", InstanceIds=list(ids)))
    except CloudError as error:
        if error.kind == "gone":  # AWS may not list a new instance yet, and no longer lists an old one
            return []
        raise
    return [_parse_instance(instance, account.region) for reservation in pages for instance in reservation["Instances"]]


def _parse_instance(item: dict[str, Any], region: str) -> CloudInstance:
    tag_values = tags.read(item)
    market: Market = "spot" if item.get("InstanceLifecycle") == "spot" else "on-demand"
    transition = str(item.get("StateTransitionReason", ""))
    state_reason = item.get("StateReason") or {}
    state = str(item["State"]["Name"])
    has_ended = state not in {"pending", "running"}
    end = ENDED_AT.search(transition)
    return CloudInstance(
        id=item["InstanceId"],
        node=tag_values.get("Node", ""),
        instance_type=item["InstanceType"],
        region=region,
        zone=(item.get("Placement") or {}).get("AvailabilityZone", ""),
        market=market,
        state=state,
        launched=item["LaunchTime"],
        address=item.get("PublicIpAddress") or "",
        private_address=item.get("PrivateIpAddress") or "",
        ended=datetime.fromisoformat(end.group(1) + "+00:00") if end and state != "running" else None,
        reason=(str(state_reason.get("Message", "")) or transition) if has_ended else "",
        reason_code=str(state_reason.get("Code", "")) if has_ended else "",
        stack=tag_values.get("Stack", ""),
        module=tag_values.get("Module", ""),
        expires=tag_values.get("Expires", ""),
    )
