from __future__ import annotations

import pytest

from gpucourse.aws import ingress
from gpucourse.errors import MissingError, UsageError
from tests.unit.aws.cloud import TAGS, MotoAccount
from tests.unit.aws.conftest import Lab, make_lab


def rules(account: MotoAccount, group: str) -> dict[str, tuple[str, str]]:
    rule_list = account.client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])
    return {
        rule["SecurityGroupRuleId"]: (rule.get("CidrIpv4", ""), rule.get("Description", ""))
        for rule in rule_list["SecurityGroupRules"]
        if not rule["IsEgress"]
    }


def test_the_rule_lets_the_new_address_in_and_stays_the_same_rule(moto: MotoAccount, lab: Lab) -> None:
    before = rules(moto, lab.group)
    assert ingress.list_allowed_addresses(moto, stack="s-1") == ["18.1.2.3/32"]
    [opened] = ingress.allow(moto, "18.9.9.9/32", stack="s-1")
    assert (opened.group, opened.before, opened.now) == (lab.group, "18.1.2.3/32", "18.9.9.9/32")
    after = rules(moto, lab.group)
    assert set(after) == set(before)
    assert after[opened.rule] == ("18.9.9.9/32", "SSH")
    assert ingress.list_allowed_addresses(moto, stack="s-1") == ["18.9.9.9/32"]


def test_the_same_address_changes_nothing(moto: MotoAccount, lab: Lab) -> None:
    assert ingress.allow(moto, "18.1.2.3", stack="s-1") == []


def test_other_stacks_and_strangers_are_not_touched(moto: MotoAccount, lab: Lab, foreign: Lab) -> None:
    other = make_lab(moto, {**TAGS, "Stack": "s-2"})
    ingress.allow(moto, "18.9.9.9/32", stack="s-1")
    for group in (foreign.group, other.group):
        assert "18.1.2.3/32" in {cidr for cidr, _text in rules(moto, group).values()}


@pytest.mark.parametrize("cidr", ["0.0.0.0/0", "18.0.0.0/8", "10.0.0.1/32"])
def test_never_wider_than_one_public_address(moto: MotoAccount, lab: Lab, cidr: str) -> None:
    with pytest.raises(UsageError):
        ingress.allow(moto, cidr, stack="s-1")
    assert ingress.list_allowed_addresses(moto, stack="s-1") == ["18.1.2.3/32"]


def test_a_stack_without_a_rule_is_missing(moto: MotoAccount) -> None:
    with pytest.raises(MissingError):
        ingress.allow(moto, "18.9.9.9/32", stack="s-1")
