"""Records of labs of module 3, on any target."""

from __future__ import annotations

from gpucourse.context import Context
from gpucourse.model.deployment import Deployment
from gpucourse.units import now_utc
from gpucourse.workspace import deployments


def record(context: Context, kind: type[Deployment], target: str) -> Deployment:
    """The record of a lab of module 3, stored."""
    now = now_utc()
    lab = kind(
        stack=f"03-{target}", uid="u", module="3", target=target, template="t", phase="ready", created=now, updated=now,
        nodes_wanted=1,
    )  # fmt: skip
    deployments.save(context.paths, lab)
    return lab
