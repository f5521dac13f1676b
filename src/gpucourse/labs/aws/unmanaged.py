"""Resources that a killed Terraform created but did not record: found by tag, and removed before they are created again."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.aws.kinds import GATEWAY, INSTANCE, KEY_PAIR, PLACEMENT_GROUP, ROUTE_TABLE, SECURITY_GROUP, SUBNET
from gpucourse.aws.removal import remove
from gpucourse.context import Context
from gpucourse.labs.aws.lab import CloudLab
from gpucourse.model.cloud import CloudResource
from gpucourse.model.event import Note
from gpucourse.provision import state

# What costs money, what has a unique name or address range, and what keeps Terraform waiting for the network's removal.
BLOCKING = {kind.name for kind in (INSTANCE, KEY_PAIR, PLACEMENT_GROUP, SECURITY_GROUP, ROUTE_TABLE, SUBNET, GATEWAY)}


def clear(context: Context, lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Remove what `find` finds, and return it. Raises the errors of `Account.call`; what cannot be removed is left for
    `destroy`."""
    resources = find(lab, standing)
    if resources:
        count = f"{len(resources)} resource{'s' if len(resources) > 1 else ''}"
        context.watch(Note(text=f"removing {count} that an interrupted attempt left", level="warning"))
        remove(lab.account, resources, context.watch)
    return resources


def find(lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Return resources with this lab's tags that are not in Terraform's state. `standing`: the result of a recent scan of the
    lab, if there was one.

    If the state is empty, these are all resources; else only what would block Terraform, or the next attempt. Raises the
    errors of `Account.call`.
    """
    known = state.values(lab.paths.state)
    stands = lab.find_resources() if standing is None else standing
    return [
        resource
        for resource in stands
        if resource.seen and (not known or (resource.kind in BLOCKING and resource.id not in known))
    ]
