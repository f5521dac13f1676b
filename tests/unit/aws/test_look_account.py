"""Checks of the account as such: the steps of the page, who sees the bill, and AWS's own roles."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws import look_account
from gpucourse.aws.preflight import preflight
from tests.unit.aws.cloud import error, make_refusal
from tests.unit.aws.test_preflight import CLOSED_REGION, LABS, ROOT_USER, a_good_account, make_environment, run_preflight

PAGE = (Path(__file__).parents[3] / "docs" / "aws-account.md").read_text(encoding="utf-8")
BUDGETS, NOTICES = ("budgets", "describe_budgets"), ("budgets", "describe_notifications_for_budget")
MAIL = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 50.0}


def test_steps_of_the_page_are_what_a_new_account_lacks() -> None:
    account = a_good_account(
        get_caller_identity=ROOT_USER,
        get_account_plan_state={"accountPlanType": "FREE"},
        describe_regions=CLOSED_REGION,
        get_service_quota=lambda asked: {"Quota": {"Value": 5.0 if asked["ServiceCode"] == "vpc" else 0.0}},
        get_role=error("NoSuchEntity"),
        run_instances=make_refusal("ec2:RunInstances"),
    )
    account.answers[BUDGETS] = make_refusal("budgets:ViewBudget")
    labs = [LABS[0], replace(LABS[1], storage_gib=5)]
    findings = preflight(account, labs, make_environment(market="spot", whole=True))
    lines = {re.sub(r" (?:L-\w+ \(.*\)|\S+\.\w+)$", "", finding.what) for finding in findings if finding.state != "ok"}
    steps = {name for names in re.findall(r"\((`[a-z`, ]+`)\)", PAGE) for name in re.findall(r"`([^`]+)`", names)}
    assert steps == lines


@pytest.mark.parametrize(
    ("budgets", "notices", "access", "mail"),
    [
        ({"Budgets": [{"BudgetName": "home"}]}, {"Notifications": [MAIL]}, "ok", "ok"),
        ({"Budgets": [{"BudgetName": "home"}]}, {"Notifications": []}, "ok", "warning"),
        ({}, {}, "ok", "warning"),
        (make_refusal("budgets:ViewBudget"), {}, "warning", "warning"),
    ],
    ids=["a mail", "a budget that is silent", "no budget", "refused"],
)
def test_bill_readers_says_who_sees_the_bill_and_gets_a_mail(budgets: object, notices: object, access: str, mail: str) -> None:
    account = a_good_account()
    account.answers |= {BUDGETS: budgets, NOTICES: notices}
    findings = {finding.what: finding for finding in look_account.bill_readers(account)}
    assert {what: finding.state for what, finding in findings.items()} == {"billing access": access, "budget mail": mail}
    assert all(finding.mend for finding in findings.values() if finding.state != "ok")


def test_region_that_does_not_exist_is_asked_of_one_that_does() -> None:
    account = a_good_account()
    account.region = "ap-southeast-9"
    finding = run_preflight(account)["region"]
    assert (finding.state, finding.detail) == ("missing", "AWS has no region ap-southeast-9")


@pytest.mark.parametrize(
    ("what", "answers", "storage", "role", "service"),
    [
        ("storage role", {}, 5, "AmazonElasticFileSystem", "elasticfilesystem"),
        ("quota role", {"get_service_quota": {"Quota": {"Value": 0.0}}}, 0, "ServiceQuotas", "servicequotas"),
    ],
)
def test_service_role_is_looked_for_when_the_labs_need_it(
    what: str, answers: dict[str, Any], storage: int, role: str, service: str
) -> None:
    def look(**more: Any) -> Any:
        labs = [replace(LABS[0], storage_gib=storage)]
        return {item.what: item for item in preflight(a_good_account(**answers, **more), labs, make_environment())}[what]

    assert look().state == "ok"
    assert what not in run_preflight(a_good_account())
    absent = look(get_role=error("NoSuchEntity"))
    assert absent.state == "warning"
    assert f"AWSServiceRoleFor{role}" in absent.detail
    assert absent.mend.endswith(f"aws iam create-service-linked-role --aws-service-name {service}.amazonaws.com")
    assert look(get_role=make_refusal("iam:GetRole")).state == "unknown"
