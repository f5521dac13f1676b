from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from gpucourse.aws import schedule
from gpucourse.aws.kinds import POLICY_NAME
from gpucourse.errors import CloudUnreachable, GpucourseError
from tests.unit.aws.cloud import TAGS, Clock, MotoAccount, ScriptedAccount, error, make_expiry, make_refusal

EXPIRES = datetime(2026, 11, 21, 15, 0, tzinfo=timezone(timedelta(hours=2)))
AT = datetime(2026, 11, 21, 13, 10, tzinfo=UTC)
IDS = ["i-1", "i-2"]


def names(account: MotoAccount) -> list[str]:
    return [role["RoleName"] for role in account.client("iam").list_roles()["Roles"]]


def test_arm_schedules_each_instance_ten_minutes_after_its_end(moto: MotoAccount) -> None:
    finding = schedule.arm(moto, IDS, EXPIRES, project_tags=TAGS)
    assert (finding.state, finding.what) == ("ok", schedule.WHAT)
    assert "2 instances at 2026-11-21T13:10:00Z" in finding.detail
    assert schedule.read_scheduled_ends(moto, stack="s-1") == {"i-1": AT, "i-2": AT}
    entry = moto.client("scheduler").get_schedule(Name="i-1", GroupName="gpucourse-s-1")
    assert entry["Target"]["Arn"] == "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
    assert json.loads(entry["Target"]["Input"]) == {"InstanceIds": ["i-1"]}
    assert entry["ActionAfterCompletion"] == "DELETE"
    assert entry["ScheduleExpressionTimezone"] == "UTC"


def test_arm_makes_a_role_that_ends_only_what_is_ours_for_schedules_of_this_account(moto: MotoAccount) -> None:
    schedule.arm(moto, IDS, EXPIRES, project_tags=TAGS)
    assert names(moto) == ["gpucourse-backstop-s-1"]
    iam = moto.client("iam")
    document = iam.get_role_policy(RoleName="gpucourse-backstop-s-1", PolicyName=POLICY_NAME)["PolicyDocument"]
    [statement] = document["Statement"]
    assert statement["Action"] == "ec2:TerminateInstances"
    assert statement["Condition"] == {"StringEquals": {"aws:ResourceTag/Project": "gpucourse"}}
    [trusted] = iam.get_role(RoleName="gpucourse-backstop-s-1")["Role"]["AssumeRolePolicyDocument"]["Statement"]
    assert trusted["Condition"] == {"StringEquals": {"aws:SourceAccount": moto.identity().account}}


def test_arm_takes_a_role_that_an_administrator_made(moto: MotoAccount) -> None:
    moto.client("iam").create_role(RoleName=schedule.ROLE, AssumeRolePolicyDocument="{}")
    schedule.arm(moto, IDS, EXPIRES, project_tags=TAGS)
    assert names(moto) == [schedule.ROLE]


def test_read_scheduled_ends_after_move_or_arm_changes_every_schedule_of_the_stack_alone(moto: MotoAccount) -> None:
    assert schedule.move(moto, EXPIRES, stack="s-1").state == "warning", "there is nothing to move"
    schedule.arm(moto, ["i-1"], EXPIRES, project_tags=TAGS)
    schedule.arm(moto, ["i-9"], EXPIRES, project_tags={**TAGS, "Stack": "s-2"})
    schedule.arm(moto, IDS, EXPIRES + timedelta(hours=1), project_tags=TAGS)
    assert set(schedule.read_scheduled_ends(moto, stack="s-1").values()) == {AT + timedelta(hours=1)}
    assert schedule.move(moto, EXPIRES + timedelta(hours=2), stack="s-1").state == "ok"
    later_end = AT + timedelta(hours=2)
    assert schedule.read_scheduled_ends(moto, stack="s-1") == {"i-1": later_end, "i-2": later_end}
    assert schedule.read_scheduled_ends(moto, stack="s-2") == {"i-9": AT}


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        ("get_role", make_expiry()),
        ("create_role", make_refusal("iam:CreateRole")),
        ("create_schedule_group", CloudUnreachable("silence", hint="")),
        ("create_schedule", make_refusal("scheduler:CreateSchedule")),
    ],
)
def test_arm_reports_what_aws_refuses_with_the_way_out(moto: MotoAccount, operation: str, problem: GpucourseError) -> None:
    moto.fail = [(operation, problem)]
    finding = schedule.arm(moto, IDS, EXPIRES, project_tags=TAGS)
    assert finding.state == "warning"
    assert problem.what in finding.detail
    assert "gpucourse doctor --setup" in finding.mend


def test_arm_waits_for_a_role_that_is_not_known_everywhere_yet(moto: MotoAccount) -> None:
    clock = Clock()
    young = error(
        "ValidationException", "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
    )
    moto.fail = [("create_schedule", young), ("create_schedule", young)]
    assert schedule.arm(moto, IDS, EXPIRES, project_tags=TAGS, sleep=clock.sleep).state == "ok"
    assert clock.now == 10.0
    moto.fail = [("create_schedule", young)] * 50
    assert schedule.arm(moto, ["i-3"], EXPIRES, project_tags=TAGS, sleep=clock.sleep).state == "warning"
    assert clock.now == 10.0 + 90.0


def test_arm_waits_for_a_group_that_is_being_deleted() -> None:
    clock = Clock()

    def make_group(_parameters: dict[str, str]) -> object:
        return {} if clock.now >= 10.0 else error("ConflictException", "Schedule group gpucourse-s-1 is being deleted.")

    account = ScriptedAccount(
        {
            ("iam", "get_role"): {"Role": {"Arn": "arn:aws:iam::123456789012:role/gpucourse-backstop"}},
            ("scheduler", "create_schedule_group"): make_group,
            ("scheduler", "list_schedule_groups"): {"ScheduleGroups": [{"Name": "gpucourse-s-1", "State": "DELETING"}]},
            ("scheduler", "create_schedule"): {},
        }
    )
    assert schedule.arm(account, ["i-1"], EXPIRES, project_tags=TAGS, sleep=clock.sleep).state == "ok"
    assert clock.now == 10.0
