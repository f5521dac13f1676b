"""What is kept of a stack. Written before anything is created, dropped only after a sweep proved everything gone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gpucourse.model.node import Inventory, Mode

Phase = Literal["creating", "ready", "failed", "destroying"]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A place where a lab was to be built and could not: the error's code and the sentence that was told."""

    zone: str
    instance_type: str
    code: str
    why: str
    at: str


@dataclass(kw_only=True)
class Cloud:
    """Where a lab stands in the cloud, and until when. Times are ISO 8601, UTC; prices USD as text.

    `placement_group`: whether it is asked for; AWS may have had no room for one. `backstop` says how the scheduled
    termination outside the nodes stands (empty: armed). `tried` holds the places that failed before.
    """

    account: str = ""
    region: str
    zone: str
    instance_type: str
    gpu: str
    market: Literal["on-demand", "spot"] = "on-demand"
    owner: str
    ssh_cidr: str
    ttl_hours: float
    expires: str
    placement_group: bool = False
    usd_per_hour: str = ""
    priced: str = ""
    backstop: str = "not armed yet"
    stopped: bool = False
    tried: list[Tried] = field(default_factory=list)


@dataclass(kw_only=True)
class Deployment:
    """One module's stack on one target. `uid` marks every process and resource that belongs to it.

    `shared` is the folder that all its machines share, where there is one. `lacks` says what it cannot show that others of its
    kind can, and what to type to have that; empty where nothing is missing. `cloud` is None on machines that cost nothing.
    """

    version: int = 1
    stack: str
    uid: str
    module: str
    title: str = ""
    target: Mode
    template: str
    phase: Phase
    created: str
    updated: str
    nodes_wanted: int
    variables: dict[str, object] = field(default_factory=dict)
    inventory: Inventory | None = None
    terraform: str = ""
    shared: str = ""
    lacks: str = ""
    cloud: Cloud | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodeHealth:
    """Whether a node answers right now; `detail` says what was seen when it does not.

    `known` is False where nobody could be asked: then it is not healthy either.
    """

    node: str
    healthy: bool
    detail: str = ""
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something a sweep still found: what it is, its id (a pid, a port, a path, a cloud id), how to remove it by hand."""

    kind: str
    id: str
    remove: str


@dataclass(kw_only=True)
class Receipt:
    """What one destroy did: what existed, what it removed, what the sweep found after it, and what is still left.

    In the cloud also: `regions` that were looked at, `ended` nodes that had ended by themselves (and why), `cost_usd` of the
    whole life of the stack, as the ledger has it.
    """

    version: int = 1
    stack: str
    uid: str
    module: str
    mode: Mode
    created: str
    destroyed: str
    nodes: list[str] = field(default_factory=list)
    existed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)
    outputs_home: list[str] = field(default_factory=list)
    outputs_discarded: list[str] = field(default_factory=list)
    regions: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    cost_usd: str = ""
