"""What is looked at before anything is planned: whether the quota holds what a lab that stands is to have besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.aws.quota import Quotas
from gpucourse.errors import MissingError
from gpucourse.labs.aws import propose
from tests.unit.aws.cloud import TAGS, ScriptedAccount, as_tag_list, make_refusal
from tests.unit.aws.test_instances import make_instance
from tests.unit.labs.aws.fakes import choice_of, context_in, deployment_of


def an_account(vcpus: float) -> ScriptedAccount:
    """Two nodes of the lab run, within a quota of so many vCPUs."""
    nodes = [
        make_instance(InstanceId=f"i-{name}", InstanceType="g4dn.2xlarge", Tags=as_tag_list({**TAGS, "Node": name}))
        for name in ("node0", "node1")
    ]
    return ScriptedAccount(
        {
            ("ec2", "describe_instances"): {"Reservations": [{"Instances": nodes}]},
            ("service-quotas", "get_service_quota"): {"Quota": {"Value": vcpus}},
            ("service-quotas", "list_requested_service_quota_change_history_by_quota"): {"RequestedQuotas": []},
        }
    )


def test_check_growth_refuses_to_exceed_the_quota_and_says_what_fits(tmp_path: Path) -> None:
    context, _events = context_in(tmp_path)
    larger = choice_of(context.catalog.module("3"), nodes=5, standing=deployment_of())
    propose._check_growth(Quotas(an_account(40.0)), larger)
    with pytest.raises(MissingError, match=r"what 03-aws-t4 needs(.|\n)*needed 24 vCPU, limit 31, in use 16") as caught:
        propose._check_growth(Quotas(an_account(31.0)), larger)
    first, ask = caught.value.hint.split("\n")
    assert first == "--nodes 3 fits into the quota as it is"
    assert ask.startswith("gpucourse doctor --target aws --request-quota --module 3 --region us-east-2 --gpu t4 --nodes 5 (")
    account = an_account(0.0)
    account.answers["service-quotas", "get_service_quota"] = make_refusal("servicequotas:GetServiceQuota")
    propose._check_growth(Quotas(account), larger)  # what cannot be read refuses nothing
