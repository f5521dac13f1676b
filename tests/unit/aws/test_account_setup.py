"""From an empty account: the page's steps are the lines of `doctor`, and the file that it prints makes what they look for."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws import look_account, schedule
from gpucourse.aws.policy import policy_text, setup_text
from gpucourse.aws.preflight import preflight
from tests.unit.aws.cloud import MotoAccount, ScriptedAccount, error, make_refusal
from tests.unit.aws.test_preflight import LABS, a_good_account, make_environment

PAGE = (Path(__file__).parents[3] / "docs" / "aws-account.md").read_text(encoding="utf-8")
TEMPLATE: dict[str, Any] = json.loads(setup_text())
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
ACCOUNT = "123456789012"
UNKNOWN_TO_MOTO = {"AWS::IAM::ServiceLinkedRole", "AWS::Budgets::Budget"}
BUDGETS, NOTICES = ("budgets", "describe_budgets"), ("budgets", "describe_notifications_for_budget")
MAIL = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 50.0}


def look_at_billing(budgets: object, notices: object = None) -> dict[str, Any]:
    account = a_good_account()
    account.answers |= {BUDGETS: budgets, NOTICES: notices or {"Notifications": []}}
    return {finding.what: finding for finding in look_account.bill_readers(account)}


def test_the_pages_steps_are_what_doctor_misses_in_a_new_account() -> None:
    account = a_good_account(
        get_caller_identity={"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:root"},
        get_account_plan_state={"accountPlanType": "FREE"},
        describe_regions={"Regions": [{"RegionName": "us-east-2", "OptInStatus": "not-opted-in"}]},
        get_service_quota=lambda asked: {"Quota": {"Value": 5.0 if asked["ServiceCode"] == "vpc" else 0.0}},
        get_role=error("NoSuchEntity"),
        run_instances=make_refusal("ec2:RunInstances"),
    )
    account.answers[BUDGETS] = make_refusal("budgets:ViewBudget")
    labs = [LABS[0], LABS[1].__class__(**{**vars(LABS[1]), "storage_gib": 5})]
    findings = preflight(account, labs, make_environment(market="spot", whole=True))
    lines = {re.sub(r" (?:L-\w+ \(.*\)|\S+\.\w+)$", "", finding.what) for finding in findings if finding.state != "ok"}
    steps = {name for names in re.findall(r"\((`[a-z`, ]+`)\)", PAGE) for name in re.findall(r"`([^`]+)`", names)}
    assert steps == lines


@pytest.mark.parametrize(
    ("budgets", "notices", "access", "mail"),
    [
        ({"Budgets": [{"BudgetName": "home"}]}, {"Notifications": [MAIL]}, "ok", "ok"),
        ({"Budgets": [{"BudgetName": "home"}]}, None, "ok", "warning"),
        ({}, None, "ok", "warning"),
        (make_refusal("budgets:ViewBudget"), None, "warning", "warning"),
    ],
    ids=["a mail", "a budget that is silent", "no budget", "refused"],
)
def test_who_may_see_the_bill_and_whether_a_budget_writes_to_anybody(
    budgets: object, notices: object, access: str, mail: str
) -> None:
    findings = look_at_billing(budgets, notices)
    assert {what: finding.state for what, finding in findings.items()} == {"billing access": access, "budget mail": mail}
    assert all(finding.mend for finding in findings.values() if finding.state != "ok")


def test_a_refusal_names_the_permission_as_the_policy_does() -> None:
    assert ScriptedAccount({}).action("budgets", "describe_budgets") == "budgets:ViewBudget"


def replace_account(document: object) -> object:
    """A document of the template with the account's number in it."""
    return json.loads(json.dumps(document).replace('{"Ref": "AWS::AccountId"}', f'"{ACCOUNT}"'))


def test_the_file_makes_what_the_program_itself_knows_and_nothing_else() -> None:
    assert RESOURCES["Policy"]["Properties"]["PolicyDocument"] == json.loads(policy_text())
    role = RESOURCES["BackstopRole"]["Properties"]
    assert role["RoleName"] == schedule.ROLE
    assert replace_account(role["AssumeRolePolicyDocument"]) == schedule.trust(ACCOUNT)
    assert role["Policies"] == [{"PolicyName": schedule.POLICY_NAME, "PolicyDocument": schedule.MAY}]
    services = {made["Properties"]["AWSServiceName"] for made in RESOURCES.values() if "Linked" in made["Type"]}
    assert services == {"spot.amazonaws.com", "elasticfilesystem.amazonaws.com", "servicequotas.amazonaws.com"}
    kinds = sorted(made["Type"].removeprefix("AWS::") for made in RESOURCES.values())
    assert kinds == ["Budgets::Budget", "IAM::ManagedPolicy", "IAM::Role", *["IAM::ServiceLinkedRole"] * 3, "IAM::User"]


def test_the_page_gives_the_file_every_parameter_that_it_must_have() -> None:
    named = set(re.findall(r"\b([A-Z][A-Za-z]+)=", PAGE))
    assert named == set(TEMPLATE["Parameters"])
    [given] = re.findall(r"--parameter-overrides (.+)", PAGE)
    required = {name for name, parameter in TEMPLATE["Parameters"].items() if "Default" not in parameter}
    assert required <= {word.partition("=")[0] for word in given.split()}
    assert f"--user-name {TEMPLATE['Parameters']['User']['Default']}\n" in PAGE


@pytest.mark.parametrize("user", ["gpucourse", ""])
def test_an_account_that_was_given_the_file_has_user_policy_and_role(moto: MotoAccount, user: str) -> None:
    given = {"Mail": "ada@example.org", "User": user}
    with warnings.catch_warnings():
        for kind in UNKNOWN_TO_MOTO:
            warnings.filterwarnings("ignore", f"Tried to parse {kind} but")
        moto.client("cloudformation").create_stack(
            StackName="gpucourse-account",
            TemplateBody=setup_text(),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
        )
    iam = moto.client("iam")
    [policy] = iam.list_policies(Scope="Local")["Policies"]
    version = iam.get_policy_version(PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    assert version["Document"] == json.loads(policy_text())
    users = iam.list_entities_for_policy(PolicyArn=policy["Arn"])["PolicyUsers"]
    assert [entry["UserName"] for entry in users] == [user] * bool(user)
    assert [entry["UserName"] for entry in iam.list_users()["Users"]] == [user] * bool(user)
    assert iam.get_role(RoleName=schedule.ROLE)["Role"]["AssumeRolePolicyDocument"] == schedule.trust(ACCOUNT)
    assert schedule.readiness(moto).state == "ok"
