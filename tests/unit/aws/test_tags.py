"""The tags that make something ours: what a person is called, and another end of life on everything that says one."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from gpucourse.aws import resource_scan, tags
from tests.unit.aws.cloud import TAGS, MotoAccount
from tests.unit.aws.conftest import make_lab

EARLIER, LATER = "2026-11-21T13:00:00+00:00", "2026-11-21T18:00:00+00:00"


def list_ends(account: MotoAccount, stack: str) -> dict[str, set[str]]:
    """Return the ends that the things of a stack say, by kind."""
    ends: dict[str, set[str]] = {}
    for resource in resource_scan.find(account, stack=stack):
        ends.setdefault(resource.kind, set()).add(resource.tags.get("Expires", "none"))
    return ends


def test_retag_expires_changes_everything_that_says_an_end(moto: MotoAccount) -> None:
    ec2 = moto.client("ec2")
    first_lab, _second_lab = (make_lab(moto, {**TAGS, "Stack": stack, "Expires": EARLIER}) for stack in ("s-1", "s-2"))
    by_hand = ec2.create_volume(AvailabilityZone="us-east-2a", Size=1)["VolumeId"]
    ec2.create_tags(Resources=[by_hand], Tags=tags.to_aws_tags(tags.make_project_tags(stack="s-1")))
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [first_lab.group]}])["SecurityGroupRules"]
    rule = rules[0]["SecurityGroupRuleId"]
    ec2.create_tags(Resources=[rule], Tags=[{"Key": "Expires", "Value": EARLIER}])
    new_end = datetime(2026, 11, 21, 20, 0, tzinfo=timezone(timedelta(hours=2)))
    tags.retag_expires(moto, resource_scan.find(moto, stack="s-1"), new_end)
    ends = list_ends(moto, "s-1")
    assert ends.pop("volume") == {LATER, "none"}, "what says no end gets none"
    assert len(ends) > 8
    assert set().union(*ends.values()) <= {LATER}
    [retagged_rule] = ec2.describe_security_group_rules(SecurityGroupRuleIds=[rule])["SecurityGroupRules"]
    assert tags.read(retagged_rule) == {"Expires": LATER}
    assert set().union(*list_ends(moto, "s-2").values()) == {EARLIER}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("CORP\\ada", "CORP_ada"),
        ("Zoë Šimůnková", "Zoë Šimůnková"),
        ("a\N{SLIGHTLY SMILING FACE}b", "a_b"),
        ("ada@example.org", "ada@example.org"),
        ("x" * 300, "x" * 128),
    ],
)
def test_make_value_accepts_whatever_a_user_is_called(text: str, value: str) -> None:
    assert tags.make_value(text) == value
