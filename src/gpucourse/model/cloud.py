"""The terms of the cloud target: what a lab needs, what it costs, what exists, what went wrong. Money is Decimal USD."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from gpucourse.model.deployment import Leftover

Market = Literal["on-demand", "spot"]

State = Literal["ok", "missing", "warning", "unknown"]
FindingKind = Literal[
    "credentials",  # whether AWS accepts the credentials
    "price",  # what the labs cost
    "backstop",  # whether AWS itself can end the instances
    "other",
]
FailureKind = Literal[
    "account",  # the account itself may not do this: because of its plan, its verification, or a block
    "quota",  # a limit that AWS raises on request
    "capacity",  # AWS has no free machine of that type there right now
    "zone",  # that zone never has that type, or has no room for one more
    "permission",  # AWS recognises the identity but denies the action
    "credentials",  # AWS does not accept the credentials, or they have expired
    "throttle",  # too many calls in a short time
    "image",  # the machine image does not exist here
    "parameter",  # a value that AWS does not accept
    "role",  # a service may not assume its role, or not yet
    "leftovers",  # something left over from an earlier lab is in the way
    "in_use",  # something else still depends on it
    "gone",  # it does not exist (any more)
    "service",  # AWS itself failed
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check before anything is built. `unknown`: the check could not be made, which is not the same as `ok`.

    `mend` is the command or the page that helps if it fails. `kind` is for the program's decisions; `what` is only for people.
    """

    what: str
    state: State
    detail: str
    mend: str = ""
    kind: FindingKind = "other"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The meaning of an AWS error for the learner. `code` and `message` are AWS's own words.

    `tell` says what is wrong, and `cure` what to type or open. `suggested` are the zones that AWS itself recommends; `action`
    is the missing permission, if the message names it.
    """

    kind: FailureKind
    code: str
    message: str
    tell: str
    cure: str
    suggested: tuple[str, ...] = ()
    action: str = ""

    @property
    def elsewhere(self) -> bool:
        """Return whether another zone may help, or another type after the last zone. Every other failure is final."""
        return self.kind in {"capacity", "zone"}


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One type of instance in the table of hardware. `quota` maps each market to the quota's code. `retired` says why AWS no
    longer offers the type; empty if AWS does."""

    name: str
    vcpus: int
    gpus: int
    gpu: str
    cluster_group: bool
    quota: dict[Market, str]
    retired: str = ""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """A number of instances of one type in a lab. `spot` says whether they are bought on the lab's market (a head is not).

    `disk_mb_s` is the throughput of each root disk in MB/s, as terraform/modules/node sets it.
    """

    instance_type: str
    count: int = 1
    disk_gib: int = 100
    disk_mb_s: int = 125
    spot: bool = True

    def market(self, market_name: Market) -> Market:
        """Return the market on which these machines are bought if the lab uses `market_name`."""
        return market_name if self.spot else "on-demand"


@dataclass(frozen=True, kw_only=True)
class LabNeed:
    """The needs of one module's lab: its machines, its shared storage in GiB, and the usual duration of the module in hours.

    `smaller` is the type, with fewer vCPUs, that its nodes may have instead; empty if there is none.
    """

    module: str
    title: str
    machines: tuple[Machines, ...]
    storage_gib: int = 0
    hours: Decimal = Decimal(2)
    smaller: str = ""

    def with_workers(self, **changes: Any) -> LabNeed:
        """Return the same lab with other nodes: another `instance_type` or another `count`. A head does not change."""
        *heads, workers = self.machines
        return replace(self, machines=(*heads, replace(workers, **changes)))


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One vCPU quota of a region, and how much of it the course needs. A number is None if it could not be looked up."""

    code: str
    name: str
    market: Market
    region: str
    needed: int
    limit: int | None
    used: int | None
    modules: tuple[str, ...] = ()
    reason: str = ""

    @property
    def free(self) -> int | None:
        """Return how many vCPUs can still be started; None if that is not known."""
        return None if self.limit is None or self.used is None else max(0, self.limit - self.used)

    @property
    def enough(self) -> bool | None:
        """Return whether the quota covers the need; None if that is not known. If the limit is below the need, that decides
        it."""
        if self.limit is not None and self.limit < self.needed:
            return False
        return None if self.free is None else self.free >= self.needed


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for a higher quota, as AWS reports it. `status` is AWS's word; CASE_CLOSED does not mean granted."""

    code: str
    region: str
    wanted: int
    status: str
    id: str = ""
    case: str = ""
    opened_before: bool = False


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The zones of a region in which each of the wanted types is offered. Local zones are left out."""

    region: str
    by_type: dict[str, frozenset[str]]
    zones: tuple[str, ...]

    def find_common_zones(self, types: frozenset[str] | None = None) -> tuple[str, ...]:
        """Return the names of the zones that offer all of `types`; by default, all wanted types."""
        type_names = types if types is not None else frozenset(self.by_type)
        return tuple(zone for zone in self.zones if all(zone in self.by_type.get(kind, frozenset()) for kind in type_names))


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One attempt at building a lab: the type, the zone, and whether its nodes are to be close together."""

    zone: str
    instance_type: str
    placement_group: bool = False


@dataclass(frozen=True, kw_only=True)
class CloudInstance:
    """The current state of one instance at AWS. `ended` is when it stopped or ended, if AWS still reports it. `reason` is AWS's
    explanation, and `reason_code` AWS's code for it (`Client.UserInitiatedShutdown`)."""

    id: str
    node: str
    instance_type: str
    region: str
    zone: str
    market: Market
    state: str
    launched: datetime
    address: str = ""
    private_address: str = ""
    ended: datetime | None = None
    reason: str = ""
    reason_code: str = ""
    stack: str = ""
    module: str = ""
    expires: str = ""

    @property
    def alive(self) -> bool:
        """Return whether the instance still exists, running or not."""
        return self.state not in {"shutting-down", "terminated"}


@dataclass(frozen=True, kw_only=True)
class CloudResource:
    """A resource in the account with the course's tags. `remove` is the exact command with which a person can remove it.

    `seen` is False if AWS did not let us look for this kind; `remove` is then the command that looks for it. `note` says why it
    could not be removed.
    """

    kind: str
    id: str
    region: str
    remove: str
    name: str = ""
    state: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    parent: str = ""
    seen: bool = True
    note: str = ""

    @property
    def leftover(self) -> Leftover:
        """Return the resource in the form that a receipt uses."""
        place = f"{self.id} in {self.region}" + (f" ({self.note})" if self.note else "")
        return Leftover(kind=self.kind, id=place, remove=self.remove)


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A type that is used if the requested type is sold out, and the price of the lab with it, in USD per hour."""

    instance_type: str
    usd_per_hour: Decimal


@dataclass(frozen=True, kw_only=True)
class Idle:
    """The last report of a node's idle agent; times are seconds since 1970. `ends_at` is None while the node is in use."""

    node: str
    seen_at: float
    busy: tuple[str, ...] = ()
    ends_at: float | None = None
