"""The file for the administrator of an account: it creates what the program uses, with the parameters that the page names."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

from gpucourse.aws import schedule
from gpucourse.aws.kinds import POLICY_NAME
from gpucourse.aws.policy import policy_text, setup_text
from tests.unit.aws.cloud import MotoAccount

PAGE = (Path(__file__).parents[3] / "docs" / "aws-account.md").read_text(encoding="utf-8")
TEMPLATE: dict[str, Any] = json.loads(setup_text())
RESOURCES: dict[str, Any] = TEMPLATE["Resources"]
ACCOUNT = "123456789012"
UNKNOWN_TO_MOTO = {"AWS::IAM::ServiceLinkedRole", "AWS::Budgets::Budget"}


def test_setup_text_makes_what_the_program_uses_and_nothing_else() -> None:
    assert RESOURCES["Policy"]["Properties"]["PolicyDocument"] == json.loads(policy_text())
    role = RESOURCES["BackstopRole"]["Properties"]
    assert role["RoleName"] == schedule.ROLE
    assert [policy["PolicyName"] for policy in role["Policies"]] == [POLICY_NAME]
    kinds = sorted(resource["Type"].removeprefix("AWS::") for resource in RESOURCES.values())
    assert kinds == ["Budgets::Budget", "IAM::ManagedPolicy", "IAM::Role", *["IAM::ServiceLinkedRole"] * 3, "IAM::User"]


def test_setup_text_has_the_parameters_that_the_page_names() -> None:
    names = set(re.findall(r"\b([A-Z][A-Za-z]+)=", PAGE))
    assert names == set(TEMPLATE["Parameters"])
    [line] = re.findall(r"--parameter-overrides (.+)", PAGE)
    required = {name for name, parameter in TEMPLATE["Parameters"].items() if "Default" not in parameter}
    assert required <= {word.partition("=")[0] for word in line.split()}
    assert f"--user-name {TEMPLATE['Parameters']['User']['Default']}\n" in PAGE


def test_setup_text_gives_an_account_user_policy_and_role(moto: MotoAccount) -> None:
    values = {"Mail": "ada@example.org", "User": "gpucourse"}
    with warnings.catch_warnings():
        for kind in UNKNOWN_TO_MOTO:
            warnings.filterwarnings("ignore", f"Tried to parse {kind} but")
        moto.client("cloudformation").create_stack(
            StackName="gpucourse-account",
            TemplateBody=setup_text(),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()],
        )
    iam = moto.client("iam")
    [policy] = iam.list_policies(Scope="Local")["Policies"]
    version = iam.get_policy_version(PolicyArn=policy["Arn"], VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    assert version["Document"] == json.loads(policy_text())
    users = iam.list_entities_for_policy(PolicyArn=policy["Arn"])["PolicyUsers"]
    assert [entry["UserName"] for entry in users] == ["gpucourse"]
    assert [entry["UserName"] for entry in iam.list_users()["Users"]] == ["gpucourse"]
    assert iam.get_role(RoleName=schedule.ROLE)["Role"]["AssumeRolePolicyDocument"] == schedule.trust(ACCOUNT)
    assert schedule.readiness(moto).state == "ok"
