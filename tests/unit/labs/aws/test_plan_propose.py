from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gpucourse.context import Context
from gpucourse.labs.aws.plan import _is_forgotten
from gpucourse.model.cloud import CloudResource
from tests.unit.labs.aws.fakes import choice_of, deployment_of, plan_of


def test_is_forgotten_when_terraform_would_create_what_exists(context: Context) -> None:
    node = CloudResource(kind="instance", id="i-1", region="us-east-2", remove="aws")
    terraform = SimpleNamespace(addresses=lambda: ["aws_vpc.this"])
    paths = context.paths.stack("03-aws-t4")
    lab: Any = SimpleNamespace(terraform=terraform, paths=paths, find_resources=lambda: [node])
    plan = plan_of(choice_of(context.catalog.module("3")), deployment_of())
    plan.lab = lab
    for action, expected in (("create", True), ("update", False)):
        plan.changes = [(action, "aws_instance.node[0]")]
        assert _is_forgotten(plan) is expected
