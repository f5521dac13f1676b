"""AWS's own roles: a service makes its role when an account first needs it, with the permissions of the caller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from moto.efs.models import EFSBackend
from moto.iam import models as iam

from gpucourse.aws import schedule
from tests.mock_aws.call import Call
from tests.mock_aws.permissions import Permission
from tests.mock_aws.refusal_error import RefusalError
from tests.mock_aws.state import ACCOUNT_ID, State

_ACTION = "CreateServiceLinkedRole"


@dataclass(frozen=True, kw_only=True)
class ServiceRole:
    """A service that works with a role of its own: its name, the role's name without the common beginning, and what a caller
    hears who may not make that role."""

    service: str
    suffix: str
    refusal: tuple[str, str, int]

    @property
    def name(self) -> str:
        """The role's name."""
        return f"AWSServiceRoleFor{self.suffix}"


SPOT = ServiceRole(
    service="spot.amazonaws.com",
    suffix="EC2Spot",
    refusal=(
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
        "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
        403,
    ),
)
STORAGE = ServiceRole(
    service="elasticfilesystem.amazonaws.com",
    suffix="AmazonElasticFileSystem",
    refusal=("AccessDeniedException", "User is not authorized to perform that action on the specified resource", 403),
)
QUOTAS = ServiceRole(
    service="servicequotas.amazonaws.com",
    suffix="ServiceQuotas",
    refusal=("DependencyAccessDeniedException", "Service-linked role creation access denied", 400),
)


def install(state: State) -> None:
    """moto asks for no role of AWS's own, and gives them other names."""
    for role in (SPOT, STORAGE, QUOTAS):
        iam.SERVICE_NAME_CONVERSION[role.service.partition(".")[0]] = role.suffix
    usual = EFSBackend.create_mount_target

    def create_mount_target(self: Any, *args: Any, **kwargs: Any) -> Any:
        have(state, STORAGE)
        return usual(self, *args, **kwargs)

    EFSBackend.create_mount_target = create_mount_target  # type: ignore[method-assign]
    know_the_role_of_the_backstop(state)


def know_the_role_of_the_backstop(state: State) -> None:
    """An administrator made it: the policy of the course lets nobody make a role."""
    usual = iam.IAMBackend.get_role

    def get_role(self: Any, role_name: str) -> Any:
        if role_name == schedule.ROLE and state.backstop_role:
            state.backstop_role = False
            trusted = json.dumps(schedule.trust(ACCOUNT_ID))
            self.create_role(schedule.ROLE, trusted, "/", None, "", [], None)
        return usual(self, role_name)

    iam.IAMBackend.get_role = get_role  # type: ignore[method-assign]


def have(state: State, role: ServiceRole) -> None:
    """Make the role where the account has none yet, if the course's policy and the test let the caller. Raises RefusalError."""
    backend = iam.iam_backends[ACCOUNT_ID]["aws"]
    if any(known.name == role.name for known in backend.roles.values()):
        return
    asked = Call(service="iam", action=_ACTION, region="us-east-1", key="", protocol="query", content_type="")
    arn = f"arn:aws:iam::{ACCOUNT_ID}:role/aws-service-role/{role.service}/{role.name}"
    permission = Permission(action=f"iam:{_ACTION}", resource=arn, context={"iam:AWSServiceName": role.service})
    state.note_permissions(asked, [permission])
    if state.faults.is_denied(asked) or not (state.by_administrator or permission.is_allowed):
        raise RefusalError(*role.refusal)
    backend.create_service_linked_role(role.service, "", "")
