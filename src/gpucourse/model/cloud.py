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
    "account",  # the account itself is not allowed to: because of its plan, its verification, a block
    "quota",  # a limit that AWS raises on request
    "capacity",  # AWS has no free machine of that type there right now
    "zone",  # that zone never has that type, or has no room for one more
    "permission",  # AWS recognises the identity, and denies the action
    "credentials",  # AWS does not accept the credentials, or they have expired
    "throttle",  # too many calls in a short time
    "image",  # the machine image does not exist here
    "parameter",  # a value that AWS does not accept
    "role",  # a service may not assume its role, or not yet
    "leftovers",  # something of an earlier lab is in the way
    "in_use",  # something else still depends on it
    "gone",  # it does not exist (any more)
    "service",  # AWS itself failed
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check before anything is built. `unknown`: it could not be made, which is not `ok`.

    `mend` is the command or the page that helps if it fails. `kind` is for the program's decisions; `what` is read by
    people alone.
    """

    what: str
    state: State
    detail: str
    mend: str = ""
    kind: FindingKind = "other"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What an error of AWS means for the learner. `code` and `message` are AWS's own words.

    `tell` says what is wrong, `cure` what to type or to open. `suggested` are the zones that AWS itself names as better,
    `action` the permission that was missing, if the message says so.
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
        """Return whether another zone, or after the last zone another type, may help. Every other failure is final at once."""
        return self.kind in {"capacity", "zone"}


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One type of instance in the table of hardware. `quota` is the quota's code by market. `retired` says why AWS no longer
    has the type; empty if AWS has it."""

    name: str
    vcpus: int
    gpus: int
    gpu: str
    cluster_group: bool
    quota: dict[Market, str]
    retired: str = ""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """A number of instances of one type in a lab. `spot` says whether they follow the market of the lab (a head does not).

    `disk_mb_s` is the throughput of each root disk in MB/s, as terraform/modules/node sets it.
    """

    instance_type: str
    count: int = 1
    disk_gib: int = 100
    disk_mb_s: int = 125
    spot: bool = True

    def market(self, market_name: Market) -> Market:
        """Return the market on which these are bought if the lab wants `market_name`."""
        return market_name if self.spot else "on-demand"


@dataclass(frozen=True, kw_only=True)
class LabNeed:
    """What one module's lab needs: its machines, shared storage in GiB, and how long the module usually takes, in hours.

    `smaller` is the type that its nodes may have instead, with fewer vCPUs; empty if there is none.
    """

    module: str
    title: str
    machines: tuple[Machines, ...]
    storage_gib: int = 0
    hours: Decimal = Decimal(2)
    smaller: str = ""

    def with_workers(self, **changes: Any) -> LabNeed:
        """Return the same lab with other nodes: another `instance_type`, another `count`. A head does not change."""
        *heads, workers = self.machines
        return replace(self, machines=(*heads, replace(workers, **changes)))


@dataclass(frozen=True, kw_only=True)
class Quota:
    """One vCPU quota of a region against what the course needs of it. None: it could not be looked up."""

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
        """Return whether the need fits; None if that is not known. A limit below the need is enough to decide it."""
        if self.limit is not None and self.limit < self.needed:
            return False
        return None if self.free is None else self.free >= self.needed


@dataclass(frozen=True, kw_only=True)
class QuotaRequest:
    """A request for a higher quota, as AWS has it. `status` is AWS's word; CASE_CLOSED does not mean granted."""

    code: str
    region: str
    wanted: int
    status: str
    id: str = ""
    case: str = ""
    opened_before: bool = False


@dataclass(frozen=True, kw_only=True)
class Offers:
    """Which zones of a region offer which of the wanted types. Local zones are left out."""

    region: str
    by_type: dict[str, frozenset[str]]
    zones: tuple[str, ...]

    def find_common_zones(self, types: frozenset[str] | None = None) -> tuple[str, ...]:
        """Return the zones that offer all of these types (of all wanted ones by default), by name."""
        type_names = types if types is not None else frozenset(self.by_type)
        return tuple(zone for zone in self.zones if all(zone in self.by_type.get(kind, frozenset()) for kind in type_names))


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One try at building a lab: which type, in which zone, and whether its nodes are to be close together."""

    zone: str
    instance_type: str
    placement_group: bool = False


@dataclass(frozen=True, kw_only=True)
class CloudInstance:
    """The current state of one instance at AWS. `ended` is when it stopped or ended, if AWS still reports it; `reason` is why,
    in AWS's words, and `reason_code` its code for that (`Client.UserInitiatedShutdown`)."""

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
        """Return whether it still exists, running or not."""
        return self.state not in {"shutting-down", "terminated"}


@dataclass(frozen=True, kw_only=True)
class CloudResource:
    """A resource in the account that has the course's tags. `remove` is the exact command that removes it by hand.

    `seen` is False if AWS did not let us look for this kind: then `remove` is the command that looks. `note` says what
    kept it from being removed.
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
        """Return it in the form of a receipt."""
        place = f"{self.id} in {self.region}" + (f" ({self.note})" if self.note else "")
        return Leftover(kind=self.kind, id=place, remove=self.remove)


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """A type that is used if the requested one is sold out, and what the lab costs with it, in USD per hour."""

    instance_type: str
    usd_per_hour: Decimal


@dataclass(frozen=True, kw_only=True)
class Idle:
    """The last report of a node's idle agent; times are seconds since 1970. `ends_at` is None while the node is in use."""

    node: str
    seen_at: float
    busy: tuple[str, ...] = ()
    ends_at: float | None = None
