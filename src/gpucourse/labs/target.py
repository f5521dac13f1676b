"""What a target is: a kind of place where labs can be. Only the registry here and the folders beside it know their names."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from gpucourse.errors import MissingError, UsageError

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.health import Health
    from gpucourse.labs.request import DeployRequest, PreflightRequest
    from gpucourse.labs.results import BuildResult, ChangeResult, Extension, PreflightReport, Proposal, ShortQuota, StackCost
    from gpucourse.model.cloud import CloudResource, Finding, QuotaRequest
    from gpucourse.model.deployment import Deployment, Receipt

TARGETS = {
    "local": "gpucourse.labs.local.target:LocalTarget",
    "aws": "gpucourse.labs.aws.target:AwsTarget",
    "hosts": "gpucourse.labs.hosts.target:HostsTarget",
    "here": "gpucourse.labs.here.target:HereTarget",
}
"""Every target by name, and the class that implements it: imported when it is needed, for `--help` asks for names alone."""


P = TypeVar("P", bound="Proposal")
D_contra = TypeVar("D_contra", bound="Deployment", contravariant=True)


class Target(Protocol[P, D_contra]):
    """A kind of place where labs are. A class with this base writes the four abstract verbs; the other
    methods say what is right where there is nothing special. Errors are those of errors.py.

    `name` is what `--target` takes; `no_clock` says why its labs can neither be paused nor given more time. What only some
    targets can do is in the protocols below.
    """

    name: str
    no_clock: str

    @abstractmethod
    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[P]:
        """What would be built, its price, and what hinders it; changes nothing. The stacks' locks are held for the block."""
        ...

    @abstractmethod
    def build(self, context: Context, proposal: P) -> BuildResult:
        """Build what was proposed, inside the block of the proposal; one lab alone raises its error."""
        ...

    @abstractmethod
    def health(self, context: Context, labs: Sequence[D_contra], *, ask_nodes: bool) -> Health:
        """How these labs are right now. Changes nothing; with `ask_nodes`, what the nodes themselves know is asked, too. It is
        called without labs as well: something may exist that no record explains."""
        ...

    @abstractmethod
    def take_down(self, context: Context, deployment: D_contra, receipt: Receipt) -> None:
        """Remove everything of this lab, and write into the receipt what existed, what went and what is still there.

        Raises LeftoverError if nobody can say what is left.
        """
        ...

    def find_requirements(self, context: Context, *, meant: bool) -> list[Finding]:
        """What its labs take of this computer besides what every lab does, and whether it is there. `meant`: labs are to exist
        on this target, so that nothing works without what is missing."""
        return []

    def is_meant_by(self, request: DeployRequest) -> bool:
        """Whether this request can only mean this target, where it names none."""
        return False

    def own_flags(self, request: DeployRequest) -> list[str]:
        """The flags of this request that have a meaning on this target alone."""
        return []

    def refuse_elsewhere(self, request: DeployRequest, flags: Sequence[str]) -> UsageError:
        """The error for these flags of its own, typed for another target."""
        return UsageError(
            f"{', '.join(flags)}: only on the target {self.name}",
            hint=f"gpucourse deploy {request.module} --target {self.name}",
        )

    def find_lost_nodes(self, context: Context, deployment: D_contra) -> dict[str, str]:
        """The nodes that ended by themselves and took along what was on them, by name, with the reason."""
        return {}

    def reach_again(self, context: Context, deployment: D_contra) -> tuple[str, str]:
        """Where nodes do not answer: what that costs meanwhile, as the end of a sentence, and the command that fixes it."""
        return "", f"gpucourse deploy {deployment.module}{deployment.flag} repairs the nodes"


@runtime_checkable
class HasClock(Protocol):
    """A target whose labs cost by the hour and end by themselves: they can be paused, and given more time. `label` is what
    people call it."""

    label: str

    def stop(self, context: Context, module: str, *, gpu: str | None) -> ChangeResult:
        """Pause a lab: its disks stay, and little else costs."""
        ...

    def start(self, context: Context, module: str, *, gpu: str | None, over_budget: bool) -> ChangeResult:
        """Bring a stopped lab back, with its new addresses. Raises UsageError if it costs more than is left, unless
        `over_budget`."""
        ...

    def more_time(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> Extension:
        """What that many seconds more would mean. Changes nothing."""
        ...

    def extend(self, context: Context, extension: Extension, *, over_budget: bool) -> ChangeResult:
        """Give the lab that time. Raises as `start`."""
        ...

    def keep(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> ChangeResult:
        """Do not end a lab for so long although nothing happens on it."""
        ...

    def allow_ip(self, context: Context, module: str, *, cidr: str, gpu: str | None) -> ChangeResult:
        """Let this computer in after its address changed."""
        ...

    def preview_destroy(self, context: Context, labs: Sequence[Deployment]) -> list[StackCost]:
        """What the labs of this target among these cost and have cost, for the question before they are taken down."""
        ...


@runtime_checkable
class Forgettable(Protocol):
    """A target whose machines may be gone for good, and cost nothing: a lab on it can be forgotten without being reached."""

    def find_unreachable_nodes(self, context: Context, deployment: Deployment) -> dict[str, str]:
        """The nodes that cannot be asked what of the lab is there, by name, with the reason."""
        ...

    def take_down_reachable(
        self, context: Context, deployment: Deployment, receipt: Receipt, unreachable: Mapping[str, str]
    ) -> None:
        """Remove the lab from its other nodes, and write into the receipt, besides, what may be left on these."""
        ...


@runtime_checkable
class Searchable(Protocol):
    """A target where things of this workspace may exist that no record knows, and can be found."""

    def find_untracked(self, context: Context, module: str | None) -> list[CloudResource]:
        """What stands of this workspace (of one module) and is on no record of it. Raises what asking raises."""
        ...

    def remove_untracked(self, context: Context, resources: list[CloudResource]) -> list[Receipt]:
        """Remove these, a receipt for each lab that they were part of."""
        ...


@runtime_checkable
class HasAccount(Protocol):
    """A target in an account of the learner's, which `doctor` can look at."""

    name: str

    def examine(self, context: Context, look: PreflightRequest) -> PreflightReport:
        """Everything that the labs need of the account, and their price. Changes nothing."""
        ...

    def short_quotas(self, context: Context, look: PreflightRequest) -> list[ShortQuota]:
        """The quotas that do not hold what the course needs."""
        ...

    def request_quotas(self, context: Context, look: PreflightRequest, wanted: Sequence[ShortQuota]) -> list[QuotaRequest]:
        """Ask for more of these."""
        ...

    def request_command(self, look: PreflightRequest) -> str:
        """The command that asks for these quotas."""
        ...

    def policy(self, region: str) -> str:
        """The permissions that the course needs there, as a document of the account's own. Raises UsageError for a region that
        cannot be one."""
        ...

    def setup(self, region: str) -> str:
        """All that an administrator makes there once, as a file that the account's own tools apply. Raises as `policy`."""
        ...


def list_targets() -> tuple[str, ...]:
    """The names of all targets, as `--target` takes them."""
    return tuple(TARGETS)


def find_target(name: str) -> Target[Any, Any]:
    """The target of that name. Raises MissingError for one that this installation does not have."""
    if name not in TARGETS:
        known = ", ".join(list_targets())
        raise MissingError(f"there is no target {name} here", hint=f"these are known: {known}; install the package for it")
    module, _, kind = TARGETS[name].partition(":")
    target: Target[Any, Any] = getattr(importlib.import_module(module), kind)()
    return target


def load_targets() -> list[Target[Any, Any]]:
    """All targets."""
    return [find_target(name) for name in list_targets()]
