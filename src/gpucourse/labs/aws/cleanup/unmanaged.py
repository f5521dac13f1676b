"""Resources that a killed Terraform created but did not record: found by tag, and removed before they are created again."""

from __future__ import annotations

from collections.abc import Sequence

from gpucourse.aws.kinds import INSTANCE, KEY_PAIR, PLACEMENT_GROUP
from gpucourse.aws.removal import remove
from gpucourse.context import Context
from gpucourse.labs.aws.lab import CloudLab
from gpucourse.model.cloud import CloudResource
from gpucourse.model.event import Note
from gpucourse.provision import state

IN_THE_WAY = {INSTANCE.name, KEY_PAIR.name, PLACEMENT_GROUP.name}  # those that cost money, and those with a unique name


def clear(context: Context, lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Remove what `find` finds, and return it. Raises the errors of `Account.call`; what cannot be removed is left for
    `destroy`."""
    resources = find(lab, standing)
    if resources:
        context.watch(Note(text=f"removing {len(resources)} things that an interrupted attempt left", level="warning"))
        remove(lab.account, resources, context.watch)
    return resources


def find(lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Return resources with this lab's tags that are not in Terraform's state. `standing`: the result of a recent scan of the
    lab, if there was one.

    If the state is empty, these are all resources; else only instances, and what would block the next attempt. Raises the
    errors of `Account.call`.
    """
    known = state.values(lab.paths.state)
    stands = lab.find_resources() if standing is None else standing
    return [
        resource
        for resource in stands
        if resource.seen and (not known or (resource.kind in IN_THE_WAY and resource.id not in known))
    ]
