"""The record of a stack. It is written before anything is created, and dropped only after a leak scan has proved that nothing
is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gpucourse.model.node import SIMULATED, Inventory, Mode, Node

PLAIN_SOCKETS = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1"}
"""Variables that make NCCL use ordinary sockets. Otherwise it would look for EFA, then InfiniBand, and complain about each."""

Phase = Literal["creating", "ready", "failed", "destroying"]


@dataclass(frozen=True, kw_only=True)
class PlacementAttempt:
    """A place where a lab could not be built: the error's code and the sentence that was shown."""

    zone: str
    instance_type: str
    code: str
    why: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The part of the budget that is set aside for a lab that is about to cost more: USD per hour, until a given time (ISO
    8601, UTC)."""

    usd_per_hour: str
    until: str


@dataclass(kw_only=True)
class Cloud:
    """The place of a lab in the cloud, and its deadline. Times are ISO 8601 in UTC; prices are USD as text.

    `placement_group` says whether one was requested; AWS may have had no room for it. `backstop` says what is wrong with the
    scheduled termination outside the nodes (empty: it is armed). `tried` lists the places that failed before. `reservation` is
    set while a command starts the lab or gives it more time.
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
    tried: list[PlacementAttempt] = field(default_factory=list)
    reservation: Reservation | None = None


@dataclass(kw_only=True)
class Deployment:
    """One module's lab: the part of its record that is the same on every target; each target's class below adds the rest.

    `uid` marks every process and resource that belongs to the lab. `shared` is the folder that all its machines share, if there
    is one. `lacks` names what is missing in comparison with other labs of its kind, and what to type to get it; empty if
    nothing is missing. The program reads these properties of a lab, and never compares the name of its target.

    These are set for a whole class, not for one record: `costs` says whether the lab costs money while it exists.
    `uses_existing_machines` says whether its machines existed before the lab, so that the program cannot choose their number or
    the setup of their cluster. `nccl` contains the environment variables that NCCL needs for the network between its nodes.
    """

    costs: ClassVar[bool] = False
    uses_existing_machines: ClassVar[bool] = False
    nccl: ClassVar[dict[str, str]] = {}

    version: int = 1
    stack: str
    uid: str
    module: str
    title: str = ""
    target: str
    template: str
    phase: Phase
    created: str
    updated: str
    nodes_wanted: int
    inventory: Inventory | None = None
    terraform: str = ""
    shared: str = ""
    lacks: str = ""
    error: str | None = None
    cloud: Cloud | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Return the lab's nodes; empty before they exist."""
        return self.inventory.nodes if self.inventory else ()

    @property
    def is_simulated(self) -> bool:
        """Return whether its nodes are simulated, so that nothing on them is evidence of what a GPU does."""
        return self.inventory is not None and any(node.is_simulated for node in self.inventory.nodes)

    @property
    def up(self) -> bool:
        """Return whether, according to the record, runs can use the lab."""
        return self.inventory is not None and self.phase in {"ready", "failed"} and not self.is_stopped

    @property
    def mode(self) -> Mode:
        """Return the mode of its nodes, as in a run's record."""
        return SIMULATED if self.is_simulated else self.target

    @property
    def flag(self) -> str:
        """Return the option that `deploy` and `destroy` need for this lab's target, with a space before it; empty if they need
        none."""
        return f" --target {self.target}"

    @property
    def is_stopped(self) -> bool:
        """Return whether its machines were stopped on purpose and can be started again."""
        return self.cloud is not None and self.cloud.stopped

    @property
    def gpu(self) -> str:
        """Return the GPU chosen for the lab, or the substitute if that GPU was sold out; empty if none was chosen."""
        return self.cloud.gpu if self.cloud else ""

    @property
    def expires(self) -> str | None:
        """Return when the lab ends by itself, as ISO 8601 in UTC; None if it does not."""
        return self.cloud.expires if self.cloud else None

    @property
    def ports(self) -> list[int]:
        """Return the SSH ports of its nodes; empty before they are known."""
        return [node.port for node in self.inventory.nodes] if self.inventory else []

    @property
    def link(self) -> str:
        """Return the speed that the lab set for the network between its nodes; empty if it set none."""
        return ""

    @property
    def has_slurm(self) -> bool:
        """Return whether the lab itself set up a Slurm cluster that commands must wait for."""
        return False


@dataclass(kw_only=True)
class LocalVariables:
    """The options of simulated nodes: Slurm or none, the speed of their network, the folder of unpacked packages, and whether
    Slurm's daemons run side by side on this computer."""

    scheduler: str = ""
    link: str = ""
    layer: str = ""
    one_host: bool = False


@dataclass(kw_only=True)
class LocalDeployment(Deployment):
    """A lab of simulated nodes on this computer."""

    target: Literal["local"] = "local"
    variables: LocalVariables = field(default_factory=LocalVariables)

    @property
    def is_simulated(self) -> bool:
        """Return True, even before a node exists."""
        return True

    @property
    def flag(self) -> str:
        """Return an empty text: simulated nodes are the default target."""
        return ""

    @property
    def link(self) -> str:
        """Return the link that was requested: `1gbit`, or `1gbit,2ms`."""
        return self.variables.link

    @property
    def has_slurm(self) -> bool:
        """Return whether the lab has a head with Slurm in addition to the requested number of nodes."""
        return self.variables.scheduler == "slurm"


@dataclass(kw_only=True)
class AwsDeployment(Deployment):
    """A lab on AWS. The machine image has a plug-in for EFA, which no instance of the course offers."""

    costs = True
    nccl = PLAIN_SOCKETS

    target: Literal["aws"] = "aws"
    cloud: Cloud = field()  # without the default that other labs have


@dataclass(kw_only=True)
class HostsVariables:
    """The machines, in the form that the learner typed."""

    hosts: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class HostsDeployment(Deployment):
    """A lab on machines that exist already."""

    uses_existing_machines = True

    target: Literal["hosts"] = "hosts"
    variables: HostsVariables = field(default_factory=HostsVariables)


@dataclass(kw_only=True)
class HereDeployment(Deployment):
    """A lab that consists of this computer with its GPU."""

    uses_existing_machines = True

    target: Literal["here"] = "here"


_CLASSES: dict[str, type[Deployment]] = {
    "local": LocalDeployment,
    "aws": AwsDeployment,
    "hosts": HostsDeployment,
    "here": HereDeployment,
}


def deployment_class(target: object) -> type[Deployment]:
    """Return the class of the record of a lab on that target; the common class if the target needs no other."""
    return _CLASSES.get(target, Deployment) if isinstance(target, str) else Deployment


@dataclass(frozen=True, kw_only=True)
class NodeHealth:
    """The health of a node: whether it answers right now. If it does not, `detail` says what was seen.

    `known` is False if no answer came; the node then does not count as healthy either.
    """

    node: str
    healthy: bool
    detail: str = ""
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that a leak scan still found: its kind, its id (a pid, a port, a path, a cloud id), and how a person can remove
    it."""

    kind: str
    id: str
    remove: str


@dataclass(kw_only=True)
class Receipt:
    """The results of one destroy: what existed, what was removed, what the leak scan found afterwards, and what is still left.
    `forgotten` is what may be left on machines that could not be checked.

    In the cloud, `regions` are the regions that were scanned, `ended` are the nodes that had ended by themselves (and why), and
    `cost_usd` is the cost of the stack over its whole life, from the ledger.
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
    forgotten: list[Leftover] = field(default_factory=list)
    outputs_home: list[str] = field(default_factory=list)
    outputs_discarded: list[str] = field(default_factory=list)
    regions: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    cost_usd: str = ""
