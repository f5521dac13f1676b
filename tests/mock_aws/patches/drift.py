"""Values that moto forgets, so that Terraform would see a difference where there is none."""

from __future__ import annotations

from typing import Any

from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.responses.instances import InstanceResponse

from tests.mock_aws.call import RefusalError
from tests.mock_aws.state import State


def install(_state: State) -> None:
    """Apply the patches of this file."""
    keep_the_groups_of_an_instance()
    remember_what_a_rule_is_for()


def keep_the_groups_of_an_instance() -> None:
    """Keep the security groups of an instance. moto treats any unknown change of an instance as a removal of its groups. Also
    refuse to change what powering off does to a spot instance.
    """
    usual = InstanceResponse._security_grp_instance_attribute_handler

    def handler(self: Any) -> bool:
        if self._get_param("Groups", []):
            return usual(self)
        if self._get_param("InstanceInitiatedShutdownBehavior.Value"):
            behaviour = self._get_param("InstanceInitiatedShutdownBehavior.Value")
            instance = self.ec2_backend.get_instance(self._get_param("InstanceId"))
            if instance.lifecycle == "spot":
                text = "Modifying 'instanceInitiatedShutdownBehavior' is not supported for spot instances."
                raise RefusalError("UnsupportedOperation", text)
            instance.instance_initiated_shutdown_behavior = behaviour
        return True

    InstanceResponse._security_grp_instance_attribute_handler = handler  # type: ignore[method-assign]


def remember_what_a_rule_is_for() -> None:
    """Keep the description of a rule that names another group with that group, because moto does not look there."""

    def description(rule: Any) -> str | None:
        text: str | None = rule.ip_range.get("Description") or rule.source_group.get("Description")
        return text

    SecurityGroupRule.description = property(description)  # type: ignore[assignment, method-assign]
