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

IN_THE_WAY = {INSTANCE.name, KEY_PAIR.name, PLACEMENT_GROUP.name}  # what costs, and what has a name that is taken once


def clear(context: Context, lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """Remove what `find` finds; what that was. Raises what a look raises; what cannot be removed is left for `destroy`."""
    resources = find(lab, standing)
    if resources:
        context.watch(Note(text=f"removing {len(resources)} things that an interrupted attempt left", level="warning"))
        remove(lab.account, resources, context.watch)
    return resources


def find(lab: CloudLab, standing: Sequence[CloudResource] | None = None) -> list[CloudResource]:
    """What carries this lab's tags and is not in Terraform's state. `standing`: what a look at the lab found a moment ago, if
    there was one.

    Where the state knows nothing, that is everything; else only instances, and what would be in the way of the next try.
    Raises what a look raises.
    """
    known = state.values(lab.paths.state)
    stands = lab.find_resources() if standing is None else standing
    return [
        resource
        for resource in stands
        if resource.seen and (not known or (resource.kind in IN_THE_WAY and resource.id not in known))
    ]
