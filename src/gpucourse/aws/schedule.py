"""The backstop outside the nodes: AWS itself ends each instance ten minutes after its deadline, whatever the node does.

Each instance has its own EventBridge schedule, because a request to terminate several instances fails as a whole if one id is
unknown. The schedules of a stack are in a group with the stack's tags. Missing permissions are reported as a finding, because
the deadline on the nodes works without the backstop.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from gpucourse.aws import tags
from gpucourse.aws.kinds import POLICY_NAME
from gpucourse.aws.session import Account
from gpucourse.aws.tables import table
from gpucourse.errors import CloudError, GpucourseError
from gpucourse.model.cloud import Finding

AFTER = timedelta(minutes=10)
WHAT = "backstop outside the nodes"
ROLE, PATH = "gpucourse-backstop", "/gpucourse/"
SET_UP = (
    "the account's administrator does this once: gpucourse doctor --setup prints the file that creates the role with which AWS "
    "itself ends labs (the backstop)"
)
_TARGET = "scheduler:::aws-sdk:ec2:terminateInstances"  # after `arn:` and the partition of the role
_TRIES, _PAUSE_S = 18, 5.0  # 90 s: AWS needs time to make a new role known everywhere


def _group_name(stack: str) -> str:
    """Return the name of the group that contains a stack's schedules."""
    return f"{tags.PROJECT}-{stack}"


def permissions() -> dict[str, Any]:
    """Return the role's permissions: to end instances of the course, and nothing else."""
    document: dict[str, Any] = _role_properties()["Policies"][0]["PolicyDocument"]
    return document


def trust(account_id: str) -> dict[str, Any]:
    """Return the trust policy of the role: only EventBridge Scheduler may assume it, for schedules of this account."""
    document = _role_properties()["AssumeRolePolicyDocument"]
    [statement] = document["Statement"]
    return {**document, "Statement": [{**statement, "Condition": {"StringEquals": {"aws:SourceAccount": account_id}}}]}


def _role_properties() -> Any:
    """Return the properties of the role, for the administrator's CloudFormation template."""
    return table("account")["Resources"]["BackstopRole"]["Properties"]


def arm(
    account: Account,
    instances: Iterable[str],
    expires: datetime,
    *,
    project_tags: dict[str, str],
    sleep: Callable[[float], None] = time.sleep,
) -> Finding:
    """Let AWS end these instances ten minutes after `expires`. Existing schedules are moved to that time.

    `project_tags`: the stack's tags, with Project, Course and Stack. Never raises for an AWS error: the finding says whether
    the backstop exists.
    """
    stack = project_tags["Stack"]

    def do() -> str:
        role = _role(account, stack, project_tags)
        _make_group(account, _group_name(stack), project_tags, sleep)
        return _put_all(account, stack, role, sorted(set(instances)), expires, sleep)

    return _report_attempt(do)


def move(account: Account, expires: datetime, *, stack: str, sleep: Callable[[float], None] = time.sleep) -> Finding:
    """Move every schedule of the stack to ten minutes after `expires`. If the stack has no schedule, the finding says so."""

    def do() -> str:
        names = _schedules(account, _group_name(stack))
        if not names:
            raise CloudError("this stack has no schedule to move", hint="the deadline on the nodes still applies")
        schedule = account.call("scheduler", "get_schedule", Name=names[0], GroupName=_group_name(stack))
        return _put_all(account, stack, schedule["Target"]["RoleArn"], names, expires, sleep)

    return _report_attempt(do)


def retag_expires(account: Account, expires: datetime, *, stack: str) -> None:
    """Write another deadline to the tags of the stack's schedule group, and of the stack's own role if it has one.

    Raises the errors of `Account.call`.
    """
    expires_tag = tags.make_expires(expires)
    group = _find_group(account, _group_name(stack))
    if group.get("State") == "ACTIVE":
        account.call("scheduler", "tag_resource", ResourceArn=group["Arn"], Tags=expires_tag)
    if _arn(account, _role_name(stack)):
        account.call("iam", "tag_role", RoleName=_role_name(stack), Tags=expires_tag)


def read_scheduled_ends(account: Account, *, stack: str) -> dict[str, datetime]:
    """Return when AWS will end each instance of the stack, in UTC; an empty dictionary if there is no backstop.

    Raises the errors of `Account.call`.
    """
    end_times: dict[str, datetime] = {}
    for name in _schedules(account, _group_name(stack)):
        schedule = account.call("scheduler", "get_schedule", Name=name, GroupName=_group_name(stack))
        stamp = schedule["ScheduleExpression"].removeprefix("at(").removesuffix(")")
        end_times[name] = datetime.fromisoformat(stamp).replace(tzinfo=UTC)
    return end_times


def readiness(account: Account) -> Finding:
    """Return whether the backstop will work for this identity, as far as this can be checked without creating anything."""
    try:
        for _group in account.pages("scheduler", "list_schedule_groups", "ScheduleGroups", NamePrefix=tags.PROJECT):
            break
        role_arn = _arn(account, ROLE)
    except GpucourseError as error:
        return Finding(what=WHAT, state="unknown", detail=error.what, mend=SET_UP)
    if not role_arn:
        detail = f"there is no role {ROLE}; deploy creates one for the lab, if this identity is allowed to"
        return Finding(what=WHAT, state="warning", detail=detail, mend=SET_UP)
    return Finding(what=WHAT, state="ok", detail=f"AWS itself can end instances, as {role_arn}")


def _role_name(stack: str) -> str:
    """Return the name of the role that is created for one stack if there is no shared role."""
    return f"{ROLE}-{stack}"[:64]


def _report_attempt(do: Callable[[], str]) -> Finding:
    try:
        return Finding(what=WHAT, state="ok", detail=do())
    except GpucourseError as error:
        detail = f"not in place, so only the deadline and the idle agent on each node end it: {error.what}"
        return Finding(what=WHAT, state="warning", detail=detail, mend=SET_UP)


def _role(account: Account, stack: str, project_tags: dict[str, str]) -> str:
    """Return the shared role if it exists. Otherwise, return the stack's own role, which is created if needed."""
    arn = _arn(account, ROLE) or _arn(account, _role_name(stack))
    if arn:
        return arn
    role = account.call(
        "iam",
        "create_role",
        RoleName=_role_name(stack),
        Path=PATH,
        AssumeRolePolicyDocument=json.dumps(trust(account.identity().account)),
        Description="Lets EventBridge Scheduler end the instances of one gpucourse lab",
        Tags=tags.to_aws_tags(project_tags),
    )
    account.call(
        "iam", "put_role_policy", RoleName=_role_name(stack), PolicyName=POLICY_NAME, PolicyDocument=json.dumps(permissions())
    )
    return str(role["Role"]["Arn"])


def _arn(account: Account, role: str) -> str:
    """Return the ARN of that role, or an empty string if there is none."""
    answer = account.call_if_exists("iam", "get_role", RoleName=role)
    return str(answer["Role"]["Arn"]) if answer else ""


def _make_group(account: Account, name: str, project_tags: dict[str, str], sleep: Callable[[float], None]) -> None:
    """Make sure that the group exists. A group that was just deleted keeps its name for a while, but accepts no schedules."""
    for tries_left in range(_TRIES, -1, -1):
        try:
            account.call("scheduler", "create_schedule_group", Name=name, Tags=tags.to_aws_tags(project_tags))
        except CloudError as error:
            if error.cloud_code != "ConflictException":
                raise
            if _find_group(account, name).get("State") == "ACTIVE":
                return
            if tries_left == 0:
                raise
            sleep(_PAUSE_S)
        else:
            return


def _find_group(account: Account, name: str) -> dict[str, Any]:
    """Return the group of that name; its State is ACTIVE or DELETING. Return an empty dictionary if there is none."""
    groups = account.pages("scheduler", "list_schedule_groups", "ScheduleGroups", NamePrefix=name)
    return next((group for group in groups if group["Name"] == name), {})


def _put_all(account: Account, stack: str, role: str, ids: list[str], expires: datetime, sleep: Callable[[float], None]) -> str:
    """Create or move the schedule of each instance; return a sentence that says how many instances end, and when."""
    moment = (expires.astimezone(UTC) + AFTER).strftime("%Y-%m-%dT%H:%M:%S")
    for instance in ids:
        target = {
            "Arn": f"arn:{role.split(':')[1]}:{_TARGET}",
            "RoleArn": role,
            "Input": json.dumps({"InstanceIds": [instance]}),
        }
        parameters: dict[str, Any] = {
            "Name": instance,
            "GroupName": _group_name(stack),
            "ScheduleExpression": f"at({moment})",
            "ScheduleExpressionTimezone": "UTC",
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "ActionAfterCompletion": "DELETE",
            "Target": target,
        }
        _put(account, parameters, sleep)
    return f"AWS ends {len(ids)} instance{'' if len(ids) == 1 else 's'} at {moment}Z"


def _put(account: Account, parameters: dict[str, Any], sleep: Callable[[float], None]) -> None:
    """Create the schedule, or change the existing one of that name. Try again while AWS does not accept a new role yet."""
    operation = "create_schedule"
    for tries_left in range(_TRIES, -1, -1):
        try:
            account.call("scheduler", operation, **parameters)
        except CloudError as error:
            if error.cloud_code == "ConflictException" and operation == "create_schedule":
                operation = "update_schedule"
            elif error.kind != "role" or tries_left == 0:
                raise
            else:
                sleep(_PAUSE_S)
        else:
            return


def _schedules(account: Account, group: str) -> list[str]:
    try:
        return [entry["Name"] for entry in account.pages("scheduler", "list_schedules", "Schedules", GroupName=group)]
    except CloudError as error:
        if error.kind == "gone":
            return []
        raise
