"""The checks before anything costs money: what each of them finds, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpucourse.aws import offerings, schedule
from gpucourse.aws.failure_table import QUOTA as TOO_SMALL
from gpucourse.aws.money import PriceBook
from gpucourse.aws.preflight import CANDIDATES, LabEnvironment, find_bill_readers, find_quotas, preflight
from gpucourse.aws.quota import Quotas
from gpucourse.errors import CloudUnreachable, GpucourseError, MissingError
from gpucourse.model.cloud import Finding, LabNeed, Machines, Market
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, error, make_expiry, make_refusal

KEY = "ssh-ed25519 AAAAC3Nz me"
LABS = [
    LabNeed(module="1", title="", machines=(Machines(instance_type="g4dn.xlarge"),), hours=Decimal(3)),
    LabNeed(
        module="2",
        title="",
        machines=(Machines(instance_type="t3.medium", disk_gib=20, spot=False), Machines(instance_type="g4dn.xlarge", count=3)),
    ),
]
ZONES = [{"ZoneName": f"us-east-2{letter}", "ZoneId": f"use2-az{letter}"} for letter in "ab"]
OFFERED = [{"InstanceType": kind, "Location": "us-east-2a"} for kind in ("g4dn.xlarge", "t3.medium")]
ROOT_USER = {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:root"}
CLOSED_REGION = {"Regions": [{"RegionName": "us-east-2", "OptInStatus": "not-opted-in"}]}
EVERYTHING_EMPTY: dict[tuple[str, str], Any] = {
    ("ec2", "describe_instances"): {"Reservations": []},
    ("ec2", "describe_spot_instance_requests"): {},
    ("ec2", "describe_addresses"): {},
    ("ec2", "describe_network_interfaces"): {},
    ("ec2", "describe_volumes"): {},
    ("ec2", "describe_placement_groups"): {},
    ("ec2", "describe_key_pairs"): {},
    ("ec2", "describe_security_groups"): {},
    ("ec2", "describe_route_tables"): {},
    ("ec2", "describe_subnets"): {},
    ("ec2", "describe_internet_gateways"): {},
    ("efs", "describe_file_systems"): {},
    ("scheduler", "list_schedule_groups"): {"ScheduleGroups": []},
    ("resourcegroupstaggingapi", "get_resources"): {},
    ("iam", "list_roles"): {"Roles": []},
}


def role(name: str) -> dict[str, Any]:
    arn = f"arn:aws:iam::123456789012:role/{name}"
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return {"Role": {"Path": "/", "RoleName": name, "RoleId": "A" * 20, "Arn": arn, "CreateDate": moment}}


def a_good_account(**changes: Any) -> ScriptedAccount:
    """Return an account that is ready for the course. `changed`: other answers, by operation."""
    names = [*CANDIDATES["pytorch"][:1], *CANDIDATES["ubuntu"][:1]]
    answers: dict[tuple[str, str], Any] = {
        **EVERYTHING_EMPTY,
        ("sts", "get_caller_identity"): {"Account": "123456789012", "Arn": "arn:aws:iam::123456789012:user/ada"},
        ("freetier", "get_account_plan_state"): {"accountPlanType": "PAID", "accountPlanStatus": "ACTIVE"},
        ("ec2", "describe_regions"): {"Regions": [{"RegionName": "us-east-2", "OptInStatus": "opt-in-not-required"}]},
        ("ec2", "describe_availability_zones"): {"AvailabilityZones": ZONES},
        ("ec2", "describe_instance_type_offerings"): {"InstanceTypeOfferings": OFFERED},
        ("service-quotas", "get_service_quota"): {"Quota": {"Value": 16.0}},
        ("service-quotas", "list_requested_service_quota_change_history_by_quota"): {"RequestedQuotas": []},
        ("iam", "get_role"): lambda asked: role(asked["RoleName"]),
        ("ssm", "get_parameters"): {"Parameters": [{"Name": name, "Value": "ami-1"} for name in names]},
        ("ec2", "describe_images"): {"Images": [{"ImageId": "ami-1"}]},
        ("ec2", "describe_vpcs"): lambda asked: {"Vpcs": [] if asked.get("Filters") else [{"VpcId": "vpc-0"}]},
        ("ec2", "run_instances"): error("DryRunOperation", "Request would have succeeded, but DryRun flag is set."),
    }
    for operation, answer in changes.items():
        key = next(key for key in answers if key[1] == operation)
        answers[key] = answer
    return ScriptedAccount(answers)


def make_environment(account: ScriptedAccount, labs: Sequence[LabNeed] = LABS, **changes: Any) -> LabEnvironment:
    services: dict[str, Any] = {
        "quotas": Quotas(account),
        "labs": labs,
        "find_offers": lambda: offerings.offers(account, (machines.instance_type for lab in labs for machines in lab.machines)),
        "terraform": "1.11.4",
        "public_key": KEY,
        "book": PriceBook(region="us-east-2"),
        "ask_address": lambda: "18.1.2.3/32",
        "regions": ("us-east-2",),
    }
    return LabEnvironment(**{**services, **changes})


def ask_nobody() -> str:
    raise MissingError("cannot learn the address", hint="--ssh-cidr")


def run_preflight(account: ScriptedAccount, **changes: Any) -> dict[str, Finding]:
    findings = preflight(make_environment(account, **changes))
    assert len({finding.what for finding in findings}) == len(findings), "two findings of one name"
    return {finding.what: finding for finding in findings}


def test_preflight_for_spot_looks_at_its_own_quota_and_role() -> None:
    account = a_good_account()
    findings = run_preflight(account, market="spot")
    assert findings["quota L-3819A6DF (spot)"].state == findings["quota L-DB2E81BA (on-demand)"].state == "ok"
    assert findings["quota L-1216C47A (on-demand)"].state == "ok"
    assert findings["spot role"].state == "ok"
    starts = {call["InstanceType"]: "InstanceMarketOptions" in call for call in account.list_calls("run_instances")}
    assert starts == {"g4dn.xlarge": True, "t3.medium": False}


def test_preflight_reports_the_quota_of_the_other_market_as_a_warning() -> None:
    values = {"L-DB2E81BA": 16.0, "L-1216C47A": 5.0, "L-3819A6DF": 0.0, "L-F678F1CE": 5.0}
    account = a_good_account(get_service_quota=lambda asked: {"Quota": {"Value": values[asked["QuotaCode"]]}})
    finding = run_preflight(account)["quota L-3819A6DF (spot)"]
    assert (finding.state, finding.detail.endswith("; counts only with --spot")) == ("warning", True)
    assert "--request-quota --spot" in finding.mend
    spot = run_preflight(account, market="spot")
    assert spot["quota L-3819A6DF (spot)"].state == "missing"
    assert spot["quota L-DB2E81BA (on-demand)"].state == "ok"
    assert "L-34B43A08" not in str(spot), "a head is never bought on the spot market"


PLAN, ZONES_2, START = "account plan", "zones for module 2", "permission to start g4dn.xlarge"
QUOTA = "quota L-DB2E81BA (on-demand)"
APART = [OFFERED[0], {**OFFERED[1], "Location": "us-east-2b"}]
EXPIRED_VOLUME = {"VolumeId": "vol-1", "Tags": as_tag_list({**TAGS, "Expires": "2026-01-01T00:00:00+00:00"})}
FULL = {"Vpcs": [{"VpcId": f"vpc-{number}"} for number in range(16)]}
LEFT_OVER = "1 resources of 1 lab(s) without a record in this workspace (s-1); 1 past their deadline"

# What the account answers, by operation; the finding's name, its state, and words of its detail and of what mends it.
MISSES: list[tuple[str, Any, str, str, str, str]] = [
    ("get_account_plan_state", {"accountPlanType": "FREE"}, PLAN, "missing", "Free plan", "billing"),
    ("get_account_plan_state", {"accountPlanStatus": "EXPIRED"}, PLAN, "missing", "expired", "billing"),
    ("get_account_plan_state", make_refusal("freetier:GetAccountPlanState"), PLAN, "unknown", "freetier", "policy"),
    ("get_account_plan_state", error("ResourceNotFoundException"), PLAN, "unknown", "no plan", "deploy"),
    ("get_caller_identity", ROOT_USER, "credentials", "warning", "root user", "--policy"),
    ("describe_regions", CLOSED_REGION, "region", "missing", "not enabled", "enable-region --region-name us-east-2"),
    ("describe_regions", {"Regions": [{"RegionName": "eu-west-1"}]}, "region", "missing", "no region", "eu-west-1"),
    ("describe_instance_type_offerings", OFFERED[1:], "zones for module 1", "missing", "no zone of us-east-2", "--region"),
    ("describe_instance_type_offerings", APART, ZONES_2, "missing", "together", "--region"),
    (
        "get_service_quota",
        0.0,
        QUOTA,
        "missing",
        "needed 12 vCPU, limit 0, in use 0; not enough for any module",
        "--request-quota",
    ),
    ("get_service_quota", 8.0, QUOTA, "missing", "enough for module 1", "https://us-east-2.console.aws.amazon.com/service"),
    ("get_service_quota", make_refusal("servicequotas:Get"), QUOTA, "unknown", "servicequotas:Get", "https://"),
    ("get_parameters", {"Parameters": []}, "image", "missing", "none of the images", "--region"),
    ("describe_vpcs", lambda asked: {} if asked.get("Filters") else FULL, "VPC limit", "missing", "16 of 16", "leaks"),
    ("run_instances", make_refusal("ec2:RunInstances"), START, "missing", "ec2:RunInstances", "--policy"),
    ("run_instances", error("VPCIdNotSpecified"), START, "unknown", "", "deploy"),
    ("run_instances", error("Blocked"), START, "missing", "blocked", "support"),
    ("get_role", error("NoSuchEntity"), schedule.WHAT, "warning", "no role gpucourse-backstop", "gpucourse doctor --setup"),
    ("list_schedule_groups", make_refusal("scheduler:List"), schedule.WHAT, "unknown", "scheduler", "doctor --setup"),
    ("describe_volumes", {"Volumes": [EXPIRED_VOLUME]}, "leftovers", "warning", LEFT_OVER, "gpucourse leaks"),
    ("list_roles", make_refusal("iam:ListRoles"), "leftovers", "unknown", "not allowed to list: role", "--policy"),
    ("describe_volumes", make_refusal("ec2:DescribeVolumes"), "leftovers", "unknown", "volume", "--policy"),
]


@pytest.mark.parametrize(
    ("operation", "answer", "message", "state", "detail", "mend"), MISSES, ids=[f"{miss[2]}-{miss[4]}" for miss in MISSES]
)
def test_preflight_reports_each_missing_item_with_its_remedy(
    operation: str, answer: Any, message: str, state: str, detail: str, mend: str
) -> None:
    if isinstance(answer, float):
        answer = {"Quota": {"Value": answer}}
    if isinstance(answer, list):
        answer = {"InstanceTypeOfferings": answer}
    finding = run_preflight(a_good_account(**{operation: answer}))[message]
    assert finding.state == state
    assert detail in finding.detail
    assert mend in finding.mend


@pytest.mark.parametrize(
    ("problem", "state"), [(make_expiry(), "missing"), (CloudUnreachable("AWS does not answer", hint="the network"), "unknown")]
)
def test_preflight_without_credentials_asks_nothing_else_of_the_account(problem: GpucourseError, state: str) -> None:
    account = a_good_account(get_caller_identity=problem)
    findings = run_preflight(account)
    assert findings["credentials"].state == state
    assert (findings["AWS account"].state, findings["AWS account"].mend) == ("unknown", problem.hint)
    assert {operation for _service, operation, _parameters in account.calls} == {"get_caller_identity"}
    assert findings["your address"].state == "ok"
    assert findings["price"].state == "ok"


@pytest.mark.parametrize(
    ("environment", "message", "state"),
    [
        ({"terraform": "1.6.1"}, "Terraform", "ok"),
        ({"terraform": "1.6.0"}, "Terraform", "missing"),
        ({"terraform": None}, "Terraform", "missing"),
        ({"public_key": ""}, "SSH key", "ok"),
        ({"public_key": "ssh-rsa AAAA"}, "SSH key", "ok"),
        ({"public_key": "ecdsa-sha2-nistp256 AAAA"}, "SSH key", "missing"),
        ({"ask_address": ask_nobody}, "your address", "missing"),
        ({"ask_address": ask_nobody, "ssh_cidr": "18.9.9.9/32"}, "your address", "ok"),
        ({"ssh_cidr": "0.0.0.0/0"}, "your address", "missing"),
    ],
)
def test_preflight_checks_this_computer(environment: dict[str, Any], message: str, state: str) -> None:
    assert run_preflight(a_good_account(), **environment)[message].state == state


def test_preflight_compares_the_price_with_the_budget() -> None:
    assert "about $5.14 for 2 labs" in run_preflight(a_good_account())["price"].detail
    assert run_preflight(a_good_account(), budget=Decimal(20))["price"].state == "ok"
    price = run_preflight(a_good_account(), budget=Decimal(20), spent=Decimal(18))["price"]
    assert (price.state, "$2.00 of the budget is left" in price.detail) == ("warning", True)


PAGE = (Path(__file__).parents[3] / "docs" / "aws-account.md").read_text(encoding="utf-8")
BUDGETS, NOTICES = ("budgets", "describe_budgets"), ("budgets", "describe_notifications_for_budget")
MAIL = {"NotificationType": "ACTUAL", "ComparisonOperator": "GREATER_THAN", "Threshold": 50.0}


def test_preflight_lists_as_steps_of_the_page_what_a_new_account_lacks() -> None:
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
    findings = preflight(make_environment(account, labs, market="spot", whole=True))
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
def test_find_bill_readers_says_who_sees_the_bill_and_gets_a_mail(
    budgets: object, notices: object, access: str, mail: str
) -> None:
    account = a_good_account()
    account.answers |= {BUDGETS: budgets, NOTICES: notices}
    findings = {finding.what: finding for finding in find_bill_readers(make_environment(account))}
    assert {name: finding.state for name, finding in findings.items()} == {"billing access": access, "budget mail": mail}
    assert all(finding.mend for finding in findings.values() if finding.state != "ok")


@pytest.mark.parametrize(
    ("message", "answers", "storage", "role", "service"),
    [
        ("storage role", {}, 5, "AmazonElasticFileSystem", "elasticfilesystem"),
        ("quota role", {"get_service_quota": {"Quota": {"Value": 0.0}}}, 0, "ServiceQuotas", "servicequotas"),
    ],
)
def test_preflight_looks_for_a_service_role_when_the_labs_need_it(
    message: str, answers: dict[str, Any], storage: int, role: str, service: str
) -> None:
    def look(**options: Any) -> Any:
        labs = [replace(LABS[0], storage_gib=storage)]
        return {item.what: item for item in preflight(make_environment(a_good_account(**answers, **options), labs))}[message]

    assert look().state == "ok"
    assert message not in run_preflight(a_good_account())
    absent = look(get_role=error("NoSuchEntity"))
    assert absent.state == "warning"
    assert f"AWSServiceRoleFor{role}" in absent.detail
    assert absent.mend.endswith(f"aws iam create-service-linked-role --aws-service-name {service}.amazonaws.com")
    assert look(get_role=make_refusal("iam:GetRole")).state == "unknown"


def test_preflight_names_small_quotas_with_the_command_and_targets_that_cost_nothing() -> None:
    account = a_good_account(get_service_quota={"Quota": {"Value": 0.0}})
    ask = "gpucourse doctor --target aws --request-quota --module 3 --region us-west-2"
    findings = run_preflight(account, request=ask)
    mends = [findings["quota L-DB2E81BA (on-demand)"].mend, findings["quota L-3819A6DF (spot)"].mend]
    assert mends[0].startswith(f"{ask} (people")
    assert mends[1].startswith(f"{ask} --spot (people")
    for mend in [*mends, TOO_SMALL]:
        assert "--target here" in mend
        assert "--target hosts" in mend


def test_find_quotas_offers_smaller_nodes_that_fit_with_the_command() -> None:
    machines = (Machines(instance_type="g4dn.2xlarge", count=2),)
    usual = LabNeed(module="3", title="", machines=machines, smaller="g4dn.xlarge")

    def mend(vcpus: float, lab: LabNeed = usual, market: Market = "on-demand") -> str:
        account = a_good_account(get_service_quota={"Quota": {"Value": vcpus}})
        [finding, *_role] = find_quotas(make_environment(account, [lab], market=market, request="ask for more"))
        return finding.mend

    command = "gpucourse deploy 3 --target aws --nodes 2 --gpu t4 --size xlarge"
    assert mend(8.0).startswith(f"{command} fits: 2 x g4dn.xlarge, 8 vCPU; ask for more (people")
    assert mend(8.0, market="spot").startswith(f"{command} --spot fits")
    assert mend(16.0) == "", "the usual size fits"
    assert mend(7.0).startswith("ask for more (people"), "neither fits"
    assert mend(8.0, replace(usual, smaller="")).startswith("ask for more (people"), "there is no smaller size"
