"""Placement groups, which moto lacks."""

from __future__ import annotations

import uuid
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import EC2Backend
from moto.ec2.responses import EC2Response

from tests.mock_aws.call import RefusalError
from tests.mock_aws.state import State, list_instances

GROUPS = "placement_groups"


def install(_state: State) -> None:
    """Apply the patches of this file."""
    answer_create_placement_group()
    answer_describe_placement_groups()
    answer_delete_placement_group()
    let_placement_groups_be_tagged()


def groups_of(backend: Any) -> dict[str, dict[str, Any]]:
    """Return a region's placement groups by name."""
    groups: dict[str, dict[str, Any]] = backend.__dict__.setdefault(GROUPS, {})
    return groups


def answer_create_placement_group() -> None:
    """Create a placement group. A name can exist only once in a region."""

    def create_placement_group(self: Any) -> ActionResult:
        name = self._get_param("GroupName")
        groups = groups_of(self.ec2_backend)
        self.error_on_dryrun()
        if name in groups:
            raise RefusalError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
        group_id = f"pg-{uuid.uuid4().hex[:17]}"
        groups[name] = {
            "GroupName": name,
            "GroupId": group_id,
            "State": "available",
            "Strategy": self._get_param("Strategy", "cluster"),
            "GroupArn": f"arn:aws:ec2:{self.region}:{self.current_account}:placement-group/{name}",
        }
        self.ec2_backend.create_tags([group_id], self._parse_tag_specification().get("placement-group", {}))
        return ActionResult({"PlacementGroup": _describe_group(self.ec2_backend, groups[name])})

    EC2Response.create_placement_group = create_placement_group  # type: ignore[attr-defined]


def answer_describe_placement_groups() -> None:
    """Return placement groups by names, ids and the filters that the project uses. A named group that does not exist is an
    error.
    """

    def describe_placement_groups(self: Any) -> ActionResult:
        names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        descriptions = [_describe_group(self.ec2_backend, group) for group in groups_of(self.ec2_backend).values()]
        groups = [
            group
            for group in descriptions
            if (not names or group["GroupName"] in names)
            and (not ids or group["GroupId"] in ids)
            and all(_fits(group, name, values) for name, values in self._filters_from_querystring().items())
        ]
        for name in names:
            if name not in {group["GroupName"] for group in descriptions}:
                raise RefusalError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        return ActionResult({"PlacementGroups": groups})

    EC2Response.describe_placement_groups = describe_placement_groups  # type: ignore[attr-defined]


def answer_delete_placement_group() -> None:
    """Delete a placement group, unless an instance is in it."""

    def delete_placement_group(self: Any) -> EmptyResult:
        name = self._get_param("GroupName")
        groups = groups_of(self.ec2_backend)
        if name not in groups:
            raise RefusalError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        if any(instance.placement.group_name == name for instance in list_instances(self.ec2_backend)):
            raise RefusalError("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted.")
        self.error_on_dryrun()
        self.ec2_backend.tags.pop(groups.pop(name)["GroupId"], None)
        return EmptyResult()

    EC2Response.delete_placement_group = delete_placement_group  # type: ignore[attr-defined]


def let_placement_groups_be_tagged() -> None:
    """Make the prefix `pg-` known to moto, which finds a tagged resource by the prefix of its id."""
    usual = EC2Backend.do_resources_exist

    def exist(self: Any, resource_ids: list[str]) -> bool:
        ids = {group["GroupId"] for group in groups_of(self).values()}
        return usual(self, [resource_id for resource_id in resource_ids if resource_id not in ids])

    EC2Backend.do_resources_exist = exist  # type: ignore[method-assign]


def _describe_group(backend: Any, group: dict[str, Any]) -> dict[str, Any]:
    tags = backend.tags.get(group["GroupId"], {})
    return {**group, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _fits(group: dict[str, Any], name: str, values: list[str]) -> bool:
    """Return whether a group matches a filter by tag."""
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    return tags.get(name.removeprefix("tag:")) in values
