"""The current state of labs, as a target reports it. In a separate file because `status` needs no other result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpucourse.labs.aws.status import Outlook
    from gpucourse.model.deployment import NodeHealth


@dataclass(frozen=True, kw_only=True)
class LabHealth:
    """The state of the nodes of one lab; for one that costs money also its `outlook`: what it costs and what will end it."""

    nodes: list[NodeHealth]
    outlook: Outlook | None = None


@dataclass(frozen=True, kw_only=True)
class Health:
    """The labs of a target by stack, and warnings about what no record explains and may cost."""

    labs: dict[str, LabHealth] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
