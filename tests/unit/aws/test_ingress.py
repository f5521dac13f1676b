from __future__ import annotations

import pytest

from gpucourse.aws import ingress
from gpucourse.errors import MissingError
from tests.unit.aws.cloud import TAGS, MotoAccount, ScriptedAccount
from tests.unit.aws.conftest import Lab, make_lab


def list_rules(account: MotoAccount, group: str) -> dict[str, tuple[str, str]]:
    rule_list = account.client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
    return {
        rule["SecurityGroupRuleId"]: (rule.get("CidrIpv4", ""), rule.get("Description", ""))
        for rule in rule_list["SecurityGroupRules"]
        if not rule["IsEgress"]
    }


def test_allow_changes_the_address_in_the_same_rule_of_this_stack_alone(moto: MotoAccount, lab: Lab, foreign: Lab) -> None:
    second_lab = make_lab(moto, {**TAGS, "Stack": "s-2"})
    before = list_rules(moto, lab.group)
    assert ingress.allow(moto, "18.1.2.3", stack="s-1") == [], "it is the same address"
    assert ingress.allow(moto, "18.9.9.9/32", stack="s-1") == [f"18.9.9.9/32 instead of 18.1.2.3/32 in {lab.group}"]
    after = list_rules(moto, lab.group)
    assert set(after) == set(before)
    assert ("18.9.9.9/32", "SSH") in after.values()
    assert "18.1.2.3/32" not in {cidr for cidr, _text in after.values()}
    for group in (foreign.group, second_lab.group):
        assert "18.1.2.3/32" in {cidr for cidr, _text in list_rules(moto, group).values()}


def test_allow_fails_when_the_stack_has_no_rule() -> None:
    account = ScriptedAccount({("ec2", "describe_security_groups"): {}})
    with pytest.raises(MissingError):
        ingress.allow(account, "18.9.9.9/32", stack="s-1")
