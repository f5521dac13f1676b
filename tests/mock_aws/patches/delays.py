"""What is not known everywhere at once: roles, instances, the end of a schedule group (see `tests.mock_aws.delays`)."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instances import InstanceBackend
from moto.ec2.responses.instances import InstanceResponse
from moto.iam.models import IAMBackend
from moto.scheduler.models import EventBridgeSchedulerBackend, ScheduleGroup

from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import State


def install(state: State) -> None:
    """See each function."""
    list_new_instances_late(state)
    take_new_roles_late(state)
    keep_the_name_of_a_deleted_group(state)


def list_new_instances_late(state: State) -> None:
    """By a tag, or by their id."""
    run, describe = InstanceResponse.run_instances, InstanceBackend.describe_instances
    by_id = InstanceBackend.get_reservations_by_instance_ids

    def run_instances(self: Any) -> ActionResult:
        result = run(self)
        reservation: Any = result.result
        for instance in getattr(reservation, "instances", ()):
            state.delays.begin(instance.id)
        return result

    def describe_instances(self: Any, filters: Any = None) -> list[Any]:
        reservations = describe(self, filters)
        if any(str(name).startswith("tag:") for name in filters or {}):
            for reservation in reservations:
                young = [entry for entry in reservation.instances if state.delays.is_young(entry.id, state.delays.listed_s)]
                reservation.instances = [entry for entry in reservation.instances if entry not in young]
        return [reservation for reservation in reservations if reservation.instances]

    def get_by_id(self: Any, instance_ids: list[str], filters: Any = None) -> list[Any]:
        for name in instance_ids:
            if state.delays.is_young(name, state.delays.known_s):
                raise RefusalError("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
        return by_id(self, instance_ids, filters)

    InstanceResponse.run_instances = run_instances  # type: ignore[method-assign]
    InstanceBackend.describe_instances = describe_instances  # type: ignore[method-assign]
    InstanceBackend.get_reservations_by_instance_ids = get_by_id  # type: ignore[method-assign]


def take_new_roles_late(state: State) -> None:
    """By EventBridge Scheduler, which tries to take the role when a schedule is made."""
    create, schedule, update = (
        IAMBackend.create_role,
        EventBridgeSchedulerBackend.create_schedule,
        EventBridgeSchedulerBackend.update_schedule,
    )

    def create_role(self: Any, *given: Any, **named: Any) -> Any:
        role = create(self, *given, **named)
        state.delays.begin(role.arn)
        return role

    def check(target: dict[str, Any]) -> None:
        if state.delays.is_young(target["RoleArn"], state.delays.role_s):
            text = "The execution role you provide must allow AWS EventBridge Scheduler to assume the role."
            raise RefusalError("ValidationException", text)

    def create_schedule(self: Any, **named: Any) -> Any:
        check(named["target"])
        if self.get_schedule_group(named["group_name"]).to_dict()["State"] == "DELETING":
            raise RefusalError("ConflictException", f"The schedule group {named['group_name']} is being deleted.", 409)
        return schedule(self, **named)

    def update_schedule(self: Any, **named: Any) -> Any:
        check(named["target"])
        return update(self, **named)

    IAMBackend.create_role = create_role  # type: ignore[method-assign]
    EventBridgeSchedulerBackend.create_schedule = create_schedule  # type: ignore[method-assign, assignment]
    EventBridgeSchedulerBackend.update_schedule = update_schedule  # type: ignore[method-assign, assignment]


def keep_the_name_of_a_deleted_group(state: State) -> None:
    """For a while it is listed as DELETING, and takes neither a schedule nor another group of its name nor its end once more.
    moto lets a group of the same name replace the one that is there."""
    backend = EventBridgeSchedulerBackend
    create, listed, shown = backend.create_schedule_group, backend.list_schedule_groups, ScheduleGroup.to_dict
    ends: dict[str, float] = {}  # by the group's name (ARN)

    def forget_deleted(self: Any) -> None:
        for name, group in list(self.schedule_groups.items()):
            if state.delays.now >= ends.get(group.arn, float("inf")) + state.delays.deleting_s:
                del self.schedule_groups[name], ends[group.arn]

    def create_schedule_group(self: Any, name: str, tags: Any) -> Any:
        forget_deleted(self)
        if name in self.schedule_groups:
            raise RefusalError("ConflictException", f"Schedule group {name} already exists.", 409)
        return create(self, name, tags)

    def delete_schedule_group(self: Any, name: str | None) -> None:
        forget_deleted(self)
        group = self.get_schedule_group(name)
        if group.arn in ends:
            raise RefusalError("ConflictException", f"Schedule group {name} is being deleted.", 409)
        ends[group.arn] = state.delays.now
        group.schedules.clear()
        forget_deleted(self)

    def list_schedule_groups(self: Any, *given: Any, **named: Any) -> Any:
        forget_deleted(self)
        return listed(self, *given, **named)

    def to_dict(self: Any) -> dict[str, Any]:
        return {**shown(self), "State": "DELETING" if self.arn in ends else "ACTIVE"}

    backend.create_schedule_group = create_schedule_group  # type: ignore[method-assign]
    backend.delete_schedule_group = delete_schedule_group  # type: ignore[method-assign]
    backend.list_schedule_groups = list_schedule_groups  # type: ignore[method-assign, assignment]
    ScheduleGroup.to_dict = to_dict  # type: ignore[method-assign]
