"""The only address that can reach the nodes' SSH port. The rule is changed in place, so that Terraform still recognises it."""

from __future__ import annotations

from gpucourse.aws import tags
from gpucourse.aws.caller import validate_cidr
from gpucourse.aws.session import Account
from gpucourse.errors import MissingError

SSH = 22


def allow(account: Account, cidr: str, *, stack: str) -> list[str]:
    """Open the stack's SSH port to `cidr` (one address) instead of the former address; return a sentence for each changed
    rule.

    Raises UsageError if the value is not one public address, MissingError if the stack has no SSH rule in this region.
    """
    address = validate_cidr(cidr)
    rules = _ssh_rules(account, stack)
    if not rules:
        raise MissingError(
            f"there is no SSH rule of this stack in {account.region}", hint="build it again: gpucourse deploy, with the module"
        )
    opened_groups: list[str] = []
    for group, rule in rules:
        if rule["CidrIpv4"] == address:
            continue
        new = {"IpProtocol": "tcp", "FromPort": SSH, "ToPort": SSH, "CidrIpv4": address}
        if rule.get("Description"):
            new["Description"] = rule["Description"]
        account.call(
            "ec2",
            "modify_security_group_rules",
            GroupId=group,
            SecurityGroupRules=[{"SecurityGroupRuleId": rule["SecurityGroupRuleId"], "SecurityGroupRule": new}],
        )
        opened_groups.append(f"{address} instead of {rule['CidrIpv4']} in {group}")
    return opened_groups


def _ssh_rules(account: Account, stack: str) -> list[tuple[str, dict[str, str]]]:
    groups = account.pages(
        "ec2", "describe_security_groups", "SecurityGroups", Filters=tags.filters(tags.make_project_tags(stack=stack))
    )
    return [
        (group["GroupId"], rule)
        for group in groups
        for rule in account.pages(
            "ec2",
            "describe_security_group_rules",
            "SecurityGroupRules",
            Filters=[{"Name": "group-id", "Values": [group["GroupId"]]}],
        )
        if not rule["IsEgress"] and rule.get("CidrIpv4") and rule.get("FromPort") == SSH and rule.get("IpProtocol") == "tcp"
    ]
