"""The data of the cloud target: a lab's needs, prices, existing resources and failures. Amounts of money are Decimal USD."""

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
    "account",  # the account itself is not allowed to do this, because of its plan, its verification, or a block
    "quota",  # a limit that AWS raises on request
    "capacity",  # AWS has no free machine of that type there right now
    "zone",  # that zone never offers that type, or cannot fit one more instance
    "permission",  # AWS recognises the identity but denies the action
    "credentials",  # AWS does not accept the credentials, or they have expired
    "throttle",  # too many calls in a short time
    "image",  # the machine image does not exist here
    "parameter",  # a value that AWS does not accept
    "role",  # a service may not assume its role, or not yet
    "leftovers",  # something that an earlier lab left behind is in the way
    "in_use",  # something else still depends on it
    "gone",  # it does not exist, or no longer exists
    "service",  # AWS itself failed
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check that is made before anything is built. `unknown` means that the check could not be made; this
    does not count as `ok`.

    `mend`: the command to type or the page to open if the check failed.
    `kind`: a fixed word that the program recognises; `what` is only for people.
    """

    what: str
    state: State
    detail: str
    mend: str = ""
    kind: FindingKind = "other"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An AWS error, explained for the learner. `code` and `message` are AWS's own words.

    `meaning`: what is wrong.
    `remedy`: what to type or open.
    `suggested`: the zones that AWS itself recommends.
    `action`: the missing permission, if AWS's message names it.
    """

    kind: FailureKind
    code: str
    message: str
    meaning: str
    remedy: str
    suggested: tuple[str, ...] = ()
    action: str = ""

    @property
    def can_retry_elsewhere(self) -> bool:
        """Return whether another zone may help or, once every zone has failed, another instance type. If not, the failure is
        final."""
        return self.kind in {"capacity", "zone"}


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One instance type in the hardware table.

    `quota`: the quota's code for each market.
    `retired`: why AWS no longer offers the type. It is empty if AWS still does.
    """

    name: str
    vcpus: int
    gpus: int
    gpu: str
    cluster_group: bool
    quota: dict[Market, str]
    retired: str = ""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """A number of instances of one type in a lab.

    `spot`: whether they are bought on the lab's market, which may be spot. The head is always on demand.
    `disk_mb_s`: throughput of each root disk in MB/s, as terraform/modules/node sets it.
    """

    instance_type: str
    count: int = 1
    disk_gib: int = 100
    disk_mb_s: int = 125
    spot: bool = True

    def market(self, market_name: Market) -> Market:
        """Return the market on which these machines are bought, in a lab on the market `market_name`."""
        return market_name if self.spot else "on-demand"


@dataclass(frozen=True, kw_only=True)
class LabNeed:
    """The needs of one module's lab: its machines, its shared storage in GiB, and the hours that the module usually takes.

    `smaller` is a type with fewer vCPUs that also suffices for the nodes. It is empty if there is no such type.
    """

    module: str
    title: str
    machines: tuple[Machines, ...]
    storage_gib: int = 0
    hours: Decimal = Decimal(2)
    smaller: str = ""

    def with_workers(self, **changes: Any) -> LabNeed:
        """Return a copy with a different `instance_type` or `count` for its nodes. The head stays unchanged."""
        *heads, workers = self.machines
        return replace(self, machines=(*heads, replace(workers, **changes)))


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One vCPU quota of a region, and how much of it the course needs. A number that could not be looked up is None."""

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
        """Return how many more vCPUs the quota allows, or None if that is not known."""
        return None if self.limit is None or self.used is None else max(0, self.limit - self.used)

    @property
    def enough(self) -> bool | None:
        """Return whether the quota covers the need, or None if that is not known. If the limit is below the need, return
        False, even if the usage is not known.
        """
        if self.limit is not None and self.limit < self.needed:
            return False
        return None if self.free is None else self.free >= self.needed


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for a higher quota, as AWS reports it. `status` is AWS's word: CASE_CLOSED does not mean that AWS granted the
    request."""

    code: str
    region: str
    wanted: int
    status: str
    id: str = ""
    case: str = ""
    opened_before: bool = False


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The zones of a region that offer each of the requested types. Local zones are left out."""

    region: str
    by_type: dict[str, frozenset[str]]
    zones: tuple[str, ...]

    def find_common_zones(self, types: frozenset[str] | None = None) -> tuple[str, ...]:
        """Return the names of the zones that offer all of `types`; by default, all requested types."""
        type_names = types if types is not None else frozenset(self.by_type)
        return tuple(zone for zone in self.zones if all(zone in self.by_type.get(kind, frozenset()) for kind in type_names))


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One attempt at building a lab: the type, the zone, and whether the nodes must be close together."""

    zone: str
    instance_type: str
    placement_group: bool = False


@dataclass(frozen=True, kw_only=True)
class CloudInstance:
    """The current state of one instance at AWS.

    `ended`: when it stopped or was terminated, if AWS still reports that.
    `reason`: AWS's explanation.
    `reason_code`: AWS's code for the explanation (`Client.UserInitiatedShutdown`).
    """

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
    """A resource in the account with the course's tags.

    `remove`: the exact command with which a person can remove it.
    `seen`: False if AWS did not let us look for this kind; `remove` is then the command that looks for it.
    `note`: why it could not be removed.
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
        """Return the resource in the form in which a receipt lists it."""
        place = f"{self.id} in {self.region}" + (f" ({self.note})" if self.note else "")
        return Leftover(kind=self.kind, id=place, remove=self.remove)


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A type to use if the requested type is sold out, and the lab's price with that type in USD per hour."""

    instance_type: str
    usd_per_hour: Decimal


@dataclass(frozen=True, kw_only=True)
class Idle:
    """The last report of a node's idle agent. Times are in seconds since 1970; `ends_at` is None while the node is in use."""

    node: str
    seen_at: float
    busy: tuple[str, ...] = ()
    ends_at: float | None = None
