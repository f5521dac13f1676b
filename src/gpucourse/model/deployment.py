"""The record of a stack. It is written before anything is created. It is dropped only after a leak scan has found nothing
left."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gpucourse.model.node import SIMULATED, Inventory, Mode, Node
from gpucourse.model.slurm_facts import ProbeFacts, SlurmFacts
from gpucourse.model.slurm_settings import SlurmSettings

PLAIN_SOCKETS = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_IB_DISABLE": "1"}
"""Variables that make NCCL use ordinary sockets. Without them, NCCL looks for EFA and InfiniBand, and complains about each."""

Phase = Literal["creating", "ready", "failed", "destroying"]


@dataclass(frozen=True, kw_only=True)
class PlacementAttempt:
    """A place where a lab could not be built, with the error's code and the sentence that was shown."""

    zone: str
    instance_type: str
    code: str
    why: str
    at: str


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A part of the budget, set aside for a lab that will soon cost more: USD per hour until a given time (ISO 8601, UTC)."""

    usd_per_hour: str
    until: str


@dataclass(kw_only=True)
class Cloud:
    """The place of a lab in the cloud, and its deadline. Times are ISO 8601 in UTC; prices are USD as text.

    `placement_group`: whether one was requested. AWS may not have had the capacity for it.
    `backstop`: why the scheduled termination, which does not depend on the nodes, is not armed. It is empty if it is armed.
    `tried`: the places where building the lab failed before.
    `reservation`: set while a command starts the lab or extends its time.
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
    """The part of a lab's record that all targets share. Each target's class below adds the other fields.

    `uid`: marks every process and resource of the lab.
    `shared`: the folder that all machines of the lab share, if there is one.
    `lacks`: the features that this lab lacks in comparison with other labs of its kind, and what to type to get them.

    The program reads the properties below instead of comparing the names of targets. Each class sets the following four for
    all of its records.
    `costs`: whether the lab costs money while it exists.
    `uses_existing_machines`: whether the machines existed before the lab. The program then cannot choose their number or set up
    their cluster.
    `nccl`: environment variables that NCCL needs on the network between the nodes.
    `runs_as_jobs`: whether every run is a Slurm job, because its only node is a login node that must not compute.
    """

    runs_as_jobs: ClassVar[bool] = False
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
        """Return the lab's nodes. The result is empty before they exist."""
        return self.inventory.nodes if self.inventory else ()

    @property
    def is_simulated(self) -> bool:
        """Return whether its nodes are simulated. Simulated nodes give no evidence of what a GPU does."""
        return self.inventory is not None and any(node.is_simulated for node in self.inventory.nodes)

    @property
    def up(self) -> bool:
        """Return whether runs can use the lab, according to its record."""
        return self.inventory is not None and self.phase in {"ready", "failed"} and not self.is_stopped

    @property
    def mode(self) -> Mode:
        """Return the mode of its nodes, as in a run's record."""
        return SIMULATED if self.is_simulated else self.target

    @property
    def flag(self) -> str:
        """Return the option that `deploy` and `destroy` need for this target, with a leading space, or an empty string if they
        need none."""
        return f" --target {self.target}"

    @property
    def is_stopped(self) -> bool:
        """Return whether its machines were stopped on purpose, so that they can be started again."""
        return self.cloud is not None and self.cloud.stopped

    @property
    def gpu(self) -> str:
        """Return the GPU of the lab: the chosen one, or its substitute if it was sold out. Return an empty string if none was
        chosen."""
        return self.cloud.gpu if self.cloud else ""

    @property
    def expires(self) -> str | None:
        """Return the lab's deadline (ISO 8601, UTC), or None if it has none."""
        return self.cloud.expires if self.cloud else None

    @property
    def ports(self) -> list[int]:
        """Return the SSH ports of its nodes. The result is empty before they are known."""
        return [node.port for node in self.inventory.nodes] if self.inventory else []

    @property
    def link(self) -> str:
        """Return the speed that the lab set for the network between its nodes, or an empty string if it did not set one."""
        return ""

    @property
    def has_slurm(self) -> bool:
        """Return whether the lab itself set up a Slurm cluster. Commands then wait for the cluster."""
        return False


@dataclass(kw_only=True)
class LocalVariables:
    """The options of simulated nodes: the scheduler, the network speed, the folder of unpacked packages, and whether all of
    Slurm's daemons use this computer's own ports.
    """

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
        """Return an empty string, because simulated nodes are the default target."""
        return ""

    @property
    def link(self) -> str:
        """Return the requested link: `1gbit`, or `1gbit,2ms`."""
        return self.variables.link

    @property
    def has_slurm(self) -> bool:
        """Return whether the lab has a Slurm head in addition to its nodes."""
        return self.variables.scheduler == "slurm"


@dataclass(kw_only=True)
class AwsDeployment(Deployment):
    """A lab on AWS. The NCCL plug-in of its machine image needs EFA, which no instance of the course has, so NCCL uses
    sockets."""

    costs = True
    nccl = PLAIN_SOCKETS

    target: Literal["aws"] = "aws"
    cloud: Cloud = field()  # without the default that other labs have


@dataclass(kw_only=True)
class HostsVariables:
    """The machines, as the learner typed them."""

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


@dataclass(frozen=True, kw_only=True)
class ClusterChoice:
    """The login node of a lab on a Slurm cluster, and the partition and account for its GPU jobs."""

    login: str
    partition: str
    account: str


@dataclass(kw_only=True)
class SlurmDeployment(Deployment):
    """A lab on a Slurm cluster where the learner has an account. Its only node is the login node, which accepts the jobs.

    `typed`: the settings that were typed for `deploy`.
    `settings`: the settings in gpucourse.yaml, overridden by `typed`, with the account that `deploy` chose.
    `run_nodes`: the most nodes that a run uses if no number was typed. If it is None, the exercise's own number applies.
    `environment`: the folder of the virtual environment that `--install` made on the cluster, or an empty string.
    `former_folders`: folders that an earlier deploy used, and that may still contain files of the course.
    """

    uses_existing_machines = True
    runs_as_jobs = True

    target: Literal["slurm"] = "slurm"
    typed: SlurmSettings = field(default_factory=SlurmSettings)
    settings: SlurmSettings = field(default_factory=SlurmSettings)
    facts: SlurmFacts = field(default_factory=SlurmFacts)
    probe: ProbeFacts = field(default_factory=ProbeFacts)
    run_nodes: int | None = None
    environment: str = ""
    former_folders: list[str] = field(default_factory=list)

    @property
    def comment(self) -> str:
        """Return the comment of all jobs of this lab. `destroy` finds them by it."""
        return f"gpucourse-{self.uid}"

    @property
    def command(self) -> str:
        """Return the command that deploys this lab again. It repeats what was typed, because a lab whose first probe fails is
        not recorded."""
        return self.typed.write_command(self.module)

    @property
    def cluster(self) -> ClusterChoice:
        """Return the login node, and the partition and account for GPU jobs, from the settings or else from the facts about
        the cluster. If the cluster has no GPUs, return the partition for jobs without one.
        """
        settings, facts = self.settings, self.facts
        choices = (facts.choose_partition(gpus=gpus, gpu=settings.gpu, account=settings.account) for gpus in (1, 0))
        partition = settings.partition or next((choice.name for choice in choices if choice is not None), "")
        return ClusterChoice(login=settings.login, partition=partition, account=settings.account)

    def write_job_python(self, settings: SlurmSettings) -> str:
        """Return the command that starts Python in a job with these settings, as shell text.

        The first one that exists is used: the command in the settings; if jobs run in a container, the container's own Python;
        the environment that `--install` made; the Python that the probe found. The result is empty if none exists.
        """
        if settings.python or settings.container:
            return settings.python or "python"
        path = f"{self.environment}/bin/python" if self.environment else self.probe.python
        return shlex.quote(path) if path else ""


_CLASSES: dict[str, type[Deployment]] = {
    "local": LocalDeployment,
    "aws": AwsDeployment,
    "hosts": HostsDeployment,
    "here": HereDeployment,
    "slurm": SlurmDeployment,
}


def deployment_class(target: object) -> type[Deployment]:
    """Return the record class for labs on that target."""
    return _CLASSES.get(target, Deployment) if isinstance(target, str) else Deployment


@dataclass(frozen=True, kw_only=True)
class NodeHealth:
    """The health of a node. `detail` says what was observed if the node is not healthy.

    `known` is False if no answer came. The node then does not count as healthy.
    """

    node: str
    healthy: bool
    detail: str = ""
    known: bool = True


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that a leak scan found: its kind, its id (a pid, a port, a path or a cloud id), and how a person can remove
    it.
    """

    kind: str
    id: str
    remove: str


@dataclass(kw_only=True)
class Receipt:
    """The result of one destroy: what existed, what was removed, what the leak scan then found, and what is still left.

    `forgotten`: what may be left on machines that could not be checked.
    `regions`: the regions that were scanned, in the cloud.
    `ended`: the nodes in the cloud that had ended before the destroy, each with the reason.
    `cost_usd`: the total cost of the stack in the cloud, from the ledger.
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
