"""The policy is exactly what the course needs: it allows every call of this package, and nothing else."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import gpucourse.aws
from gpucourse.aws.kinds import KINDS
from gpucourse.aws.policy import policy_text
from gpucourse.aws.session import IAM_ACTIONS, IAM_NAMES
from gpucourse.aws.tables import table
from gpucourse.hardware import hardware
from tests import iam_table
from tests.mock_aws import recorded
from tests.mock_aws.permissions import Statement, actions, allows, read_shipped_policy, resources
from tests.unit.aws.cloud import operation_model

SOURCE = Path(gpucourse.aws.__file__).parent
STATEMENTS = read_shipped_policy()
NAMES = [statement["Sid"] for statement in table("policy")["Statement"]]
RECORDED = [permission for permission in recorded.read() if permission.action not in recorded.ADMINISTRATORS]
TABLE = json.loads(iam_table.TABLE.read_text(encoding="utf-8"))
ADMINISTRATOR = recorded.ADMINISTRATORS | {"iam:PutRolePolicy", "iam:DeleteRolePolicy", "iam:DeleteRole", "iam:TagRole"}
READING = ("Describe", "Get", "List", "Decode", "View")
OURS = {"aws:ResourceTag/Project": "gpucourse"}
INSTANCE = "arn:aws:ec2:us-east-2:123456789012:instance/i-0123"


def calls() -> Iterator[tuple[str, str]]:
    """Return every (service, operation) in a call of the package or in a kind of resource."""
    for path in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if (
                name in {"call", "call_if_exists", "pages", "ApiCall", "_tags_unless_gone"}
                and len(words) >= 2
                and words[1].islower()
            ):
                yield words[0], words[1]
    for kind in KINDS:
        yield kind.service, kind.operation
        yield kind.service, kind.delete


CALLS = sorted(set(calls()))


def iam_action(service: str, operation: str) -> str:
    name = f"{IAM_NAMES.get(service, service)}:{operation_model(service, operation).name}"
    return IAM_ACTIONS.get(name, name)


@pytest.mark.parametrize(("partition", "limit"), [("aws", 5000), ("aws-us-gov", 5300), ("aws-cn", 5300)])
def test_policy_text_of_a_partition_has_its_arns_and_fits_into_a_managed_policy(partition: str, limit: int) -> None:
    """IAM accepts 6,144 characters, without white space. ARNs of other partitions are longer."""
    text = policy_text(partition)
    assert json.loads(text.replace(f"arn:{partition}:", "arn:aws:"))["Statement"] == STATEMENTS
    assert ("arn:aws:" in text) == (partition == "aws")
    assert len("".join(text.split())) < limit


def test_policy_text_allows_every_call_of_the_program() -> None:
    assert len(CALLS) > 40, "they are found in the source"
    patterns = [pattern for statement in STATEMENTS for pattern in actions(statement)]
    needed_actions = {iam_action(*call) for call in CALLS} - ADMINISTRATOR
    assert [action for action in sorted(needed_actions) if not any(fnmatchcase(action, pattern) for pattern in patterns)] == []


def split(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """Yield the statement without one of its actions or resources, together with the removed item."""
    for key, entries in (("Action", actions(statement)), ("Resource", resources(statement))):
        for item in entries:
            yield item, {**statement, key: [entry for entry in entries if entry != item]}


def needs(item: str) -> bool:
    """Return whether a call that no test makes to the account needs the action, or a resource of that type."""
    recorded_actions = {request.action for request in RECORDED}
    calls = {iam_action(*call) for call in CALLS} - recorded_actions
    kinds = {kind.removesuffix("*") for action in calls for kind in TABLE["actions"].get(action, {})}
    return any(fnmatchcase(action, item) for action in calls) or item.rpartition(":")[2].split("/")[0] in kinds


@pytest.mark.parametrize("index", range(len(STATEMENTS)), ids=NAMES)
def test_policy_text_allows_nothing_that_is_not_needed(index: int) -> None:
    """Remove one action or resource of a statement. A recorded permission is then refused."""
    concerned = [
        request for request in RECORDED if allows([STATEMENTS[index]], request.action, request.resource, request.context)
    ]
    statements = [*STATEMENTS[:index], *STATEMENTS[index + 1 :]]

    def refuses(variant: Statement) -> bool:
        return any(
            not allows([*statements, variant], request.action, request.resource, request.context) for request in concerned
        )

    unused = [item for item, variant in split(STATEMENTS[index]) if not refuses(variant) and not needs(item)]
    assert unused == []


def test_policy_text_allows_no_change_on_everything_if_a_resource_can_be_named() -> None:
    wide = [
        action
        for statement in STATEMENTS
        if "*" in resources(statement)
        for action, types in TABLE["actions"].items()
        if any(fnmatchcase(action, pattern) for pattern in actions(statement))
        if any(kind.endswith("*") for kind in types) and not action.partition(":")[2].startswith(READING)
    ]
    assert wide == []


def test_policy_text_names_one_service_and_one_type_in_each_resource() -> None:
    """Check the resources, because `arn:aws:ec2:*:*:*` would match everything."""
    for resource in {name for statement in STATEMENTS for name in resources(statement)} - {"*"}:
        _arn, _partition, service, _region, _account, name = resource.split(":", 5)
        kind, slash, _id = name.partition("/")
        assert ("*" in service + kind, slash) == (False, "/"), resource


def test_policy_text_starts_instances_only_with_our_tag_and_in_sizes_of_the_course() -> None:
    def starts(instance_type: str, project: str = "gpucourse") -> bool:
        context = {"aws:RequestTag/Project": project, "ec2:InstanceType": instance_type}
        return allows(STATEMENTS, "ec2:RunInstances", INSTANCE, context)

    assert all(starts(name) for name in ("t3.medium", *hardware().startable_types))
    sizes = ("8xlarge", "12xlarge", "16xlarge", "24xlarge", "48xlarge", "metal", "metal-48xl")
    large = [f"{family}.{size}" for family in ("g4dn", "g5", "g6", "g6e", "gr6", "g7e", "p5", "c7i") for size in sizes]
    types = ("t3.large", "t3.2xlarge", "m5.xlarge", "g6.4xlarge", "gr6.4xlarge", "p3.2xlarge", "p4d.24xlarge", "p6.4xlarge")
    assert not [name for name in (*large, *types, "inf2.xlarge", "trn1.2xlarge") if starts(name)]
    assert not starts("g6.xlarge", "other")
    assert not allows(STATEMENTS, "ec2:RunInstances", INSTANCE, {"aws:RequestTag/Project": "gpucourse"})


def test_policy_text_lets_nobody_raise_their_own_rights() -> None:
    for statement in STATEMENTS:
        for action in actions(statement):
            service, verb = action.split(":")
            assert action not in {"*", "iam:*"}
            if service == "iam" and verb not in {"GetRole", "ListRoles", "ListRoleTags"}:
                assert verb in {"PassRole", "CreateServiceLinkedRole"}
                assert "Condition" in statement
                assert statement["Resource"] != "*"


@pytest.mark.parametrize(
    ("service", "role"),
    [
        ("spot", "EC2Spot"),
        ("elasticfilesystem", "AmazonElasticFileSystem"),
        ("servicequotas", "ServiceQuotas"),
    ],
)
def test_policy_text_makes_only_the_roles_that_aws_needs_at_first_use(service: str, role: str) -> None:
    name = f"{service}.amazonaws.com"
    arn = f"arn:aws:iam::123456789012:role/aws-service-role/{name}/AWSServiceRoleFor{role}"
    action = "iam:CreateServiceLinkedRole"
    assert allows(STATEMENTS, action, arn, {"iam:AWSServiceName": name})
    assert not allows(STATEMENTS, action, arn, {"iam:AWSServiceName": "eks.amazonaws.com"})
    assert not allows(STATEMENTS, action, arn)


def test_policy_text_reads_only_public_parameters() -> None:
    image = "parameter/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"
    assert allows(STATEMENTS, "ssm:GetParameters", f"arn:aws:ssm:us-east-2::{image}")
    assert not allows(STATEMENTS, "ssm:GetParameters", "arn:aws:ssm:us-east-2:123456789012:parameter/database/password")


@pytest.mark.parametrize("action", ["ec2:GetConsoleOutput", "ec2:TerminateInstances"])
def test_policy_text_limits_such_calls_to_our_own_instances(action: str) -> None:
    assert allows(STATEMENTS, action, INSTANCE, OURS)
    assert not allows(STATEMENTS, action, INSTANCE, {"aws:ResourceTag/Project": "other"})
    assert not allows(STATEMENTS, action, INSTANCE)
