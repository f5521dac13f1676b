"""The interface of a target: a kind of place where labs are deployed.

The names of targets appear only in the registry in this file and in the folders next to it.
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

from gpucourse.errors import MissingError, UsageError
from gpucourse.workspace import deployments

if TYPE_CHECKING:
    from gpucourse.context import Context
    from gpucourse.labs.request import DeployRequest, PreflightRequest
    from gpucourse.labs.results import (
        BuildResult,
        ChangeResult,
        Extension,
        Health,
        LoginReport,
        PreflightReport,
        Proposal,
        ShortQuota,
        StackCost,
    )
    from gpucourse.model.cloud import CloudResource, Finding, QuotaRequest
    from gpucourse.model.deployment import Deployment, Receipt

TARGETS = {
    "local": "gpucourse.labs.local.target:LocalTarget",
    "aws": "gpucourse.labs.aws.target:AwsTarget",
    "hosts": "gpucourse.labs.hosts.target:HostsTarget",
    "here": "gpucourse.labs.here.target:HereTarget",
    "slurm": "gpucourse.labs.slurm.target:SlurmTarget",
}
"""Every target by name, with its class. A class is imported only when it is needed, since `--help` needs only the names."""


P = TypeVar("P", bound="Proposal")
D_contra = TypeVar("D_contra", bound="Deployment", contravariant=True)
A = ParamSpec("A")
R = TypeVar("R")


def call_when_used(find: Callable[[], Callable[A, R]]) -> Callable[Concatenate[Any, A], R]:
    """Return a method that calls the function that `find` returns.

    The function's module is imported only when the method is called, because `status` opens every target.
    """

    def method(_target: Any, /, *values: A.args, **options: A.kwargs) -> R:
        return find()(*values, **options)

    return method


class Target(Protocol[P, D_contra]):
    """A kind of place where labs are deployed. A subclass implements the four abstract operations; the other methods have
    defaults.

    The methods raise only errors from errors.py. The protocols below are for operations that only some targets have.

    `name`: the value of `--target`.
    `no_clock`: why its labs can neither be paused nor given more time.
    `forgettable`: its machines cost nothing and may be gone permanently, so a lab on them can be forgotten.
    `flags`: the flags of `deploy` that this target accepts and at least one other target refuses.
    `serves`: the labs or machines that these flags are for.
    `implied_by`: the flags that choose this target if none is named.
    `example`: words that `deploy` may need besides `flags`.
    """

    name: str
    no_clock: str
    forgettable: bool = False
    flags: frozenset[str] = frozenset()
    serves: str = ""
    implied_by: frozenset[str] = frozenset()
    example: Sequence[str] = ()

    @abstractmethod
    def propose(self, context: Context, request: DeployRequest) -> AbstractContextManager[P]:
        """Return the plan of the labs, with the price and everything that blocks them; change nothing.

        The locks of the stacks are held during the block.
        """

    @abstractmethod
    def build(self, context: Context, proposal: P) -> BuildResult:
        """Build the proposed labs, inside the block of the proposal, and return the results.

        If there is only one lab, its error is raised.
        """

    @abstractmethod
    def health(self, context: Context, labs: Sequence[D_contra], *, ask_nodes: bool) -> Health:
        """Return the current health of these labs. Changes nothing. With `ask_nodes`, also query the nodes themselves.

        It is also called without labs, because resources may exist that no record lists.
        """

    @abstractmethod
    def take_down(self, context: Context, deployment: D_contra, receipt: Receipt) -> None:
        """Remove everything that belongs to this lab. The receipt lists what existed, what was removed and what remains.

        Raises LeftoverError if it is unknown what is left.
        """

    def find_unreachable_nodes(self, context: Context, deployment: D_contra) -> dict[str, str]:
        """Return the nodes of a forgettable lab that do not report this program's leftovers, by name, with the reason."""
        return {}

    def take_down_reachable(
        self, context: Context, deployment: D_contra, receipt: Receipt, unreachable: Mapping[str, str]
    ) -> None:
        """Remove the lab from the nodes that can be reached. The receipt lists what may be left on the others."""
        self.take_down(context, deployment, receipt)

    def refresh(self, context: Context, deployment: D_contra) -> None:
        """Store facts about a lab that become known only after its deploy, such as the result of a job that had to wait."""
        return

    def find_requirements(self, context: Context, *, is_selected: bool) -> list[Finding]:
        """Return findings about this computer: what labs on this target need in addition to what every lab needs.

        `is_selected`: the user chose this target, so a missing requirement blocks the lab.
        """
        return []

    def find_lost_nodes(self, context: Context, deployment: D_contra) -> dict[str, str]:
        """Return the nodes that ended by themselves, by name, with the reason. Everything on them is lost."""
        return {}

    def advise_on_unreachable(self, context: Context, deployment: D_contra) -> tuple[str, str]:
        """Return a clause about the cost of nodes that do not answer, and the command that repairs them."""
        return "", f"gpucourse deploy {deployment.module}{deployment.flag} repairs the nodes"


@runtime_checkable
class HasClock(Protocol):
    """A target whose labs are billed by the hour and end by themselves: they can be paused and given more time.

    `label`: its common name.
    """

    label: str

    def stop(self, context: Context, module: str, *, gpu: str | None) -> ChangeResult:
        """Pause a lab: its disks remain, and little else costs money.

        The methods that change a lab return the changes. All methods here raise UsageError for a lab that cannot be changed
        this way.
        """

    def start(self, context: Context, module: str, *, gpu: str | None, over_budget: bool) -> ChangeResult:
        """Start a stopped lab, at its new addresses.

        Raises UsageError if the cost of the lab exceeds the remaining budget, unless `over_budget`.
        """

    def more_time(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> Extension:
        """Return the new end and the cost of a lab if it gets this many more seconds. Changes nothing."""

    def extend(self, context: Context, extension: Extension, *, over_budget: bool) -> ChangeResult:
        """Move the end of the lab. Raises the errors of `start`."""

    def keep(self, context: Context, module: str, seconds: float, *, gpu: str | None) -> ChangeResult:
        """Let an idle lab live for this many seconds; 0 cancels an earlier call. The deadline does not change."""

    def allow_ip(self, context: Context, module: str, *, cidr: str, gpu: str | None) -> ChangeResult:
        """Open SSH to this computer after its address changed."""

    def preview_destroy(self, context: Context, labs: Sequence[Deployment]) -> list[StackCost]:
        """Return the current and past costs of these labs. Labs on other targets are left out."""


@runtime_checkable
class Searchable(Protocol):
    """A target on which resources of this workspace can be found even if no record lists them."""

    def find_untracked(self, context: Context, module: str | None) -> list[CloudResource]:
        """Return resources of this workspace (or of this module) that no record lists. Raises the errors of the search."""

    def remove_untracked(self, context: Context, resources: list[CloudResource]) -> list[Receipt]:
        """Remove these resources; return a receipt for each lab that they were part of."""


@runtime_checkable
class HasLogin(Protocol):
    """A target that the learner reaches through a login node. `doctor` can examine that node."""

    name: str

    def look(self, context: Context, request: DeployRequest) -> LoginReport:
        """Return the login node's report, without submitting a job. Raises UsageError if no login node is named."""


@runtime_checkable
class HasAccount(Protocol):
    """A target in the learner's account, which `doctor` can check."""

    name: str

    def examine(self, context: Context, look: PreflightRequest) -> PreflightReport:
        """Return whether the account has everything that the labs need, and their price. Changes nothing."""

    def short_quotas(self, context: Context, look: PreflightRequest) -> list[ShortQuota]:
        """Return the quotas that are, or may be, too small for the course."""

    def request_quotas(self, context: Context, look: PreflightRequest, shortages: Sequence[ShortQuota]) -> list[QuotaRequest]:
        """Ask the provider to raise these quotas; return the requests."""

    def request_command(self, look: PreflightRequest) -> str:
        """Return the command that requests higher quotas from the provider."""

    def policy(self, region: str) -> str:
        """Return the permissions that the course needs in the account, as a policy document of the provider.

        Raises UsageError for an invalid region.
        """

    def setup(self, region: str) -> str:
        """Return everything that an administrator sets up once in the account, as a file for the provider's own tools.

        Raises the errors of `policy`.
        """


def list_targets() -> tuple[str, ...]:
    """Return the names of all targets, as accepted by `--target`."""
    return tuple(TARGETS)


def find_target(name: str) -> Target[Any, Any]:
    """Return the target of that name. Raises MissingError if this installation does not have it."""
    if name not in TARGETS:
        names = ", ".join(list_targets())
        raise MissingError(
            f"there is no target {name} in this installation", hint=f"its targets: {names}; for others, install their packages"
        )
    module, _, kind = TARGETS[name].partition(":")
    target: Target[Any, Any] = getattr(importlib.import_module(module), kind)()
    return target


def load_targets() -> list[Target[Any, Any]]:
    """Return one object of each target that this installation has."""
    return [find_target(name) for name in list_targets()]


def find_clocked_target(context: Context, module: str, gpu: str | None) -> HasClock:
    """Return the target of the lab that a command refers to. Of the targets with a clock, this is the one whose lab changed
    last.

    If the module has no recorded lab, return the first of these targets, which reports how to deploy a lab. Raises UsageError
    if the module's labs are on targets without a clock.
    """
    module_id = context.catalog.module(module).id
    labs = deployments.list_of_module(context.paths, module_id)
    for lab in labs:
        if isinstance(target := find_target(lab.target), HasClock) and gpu in {None, lab.gpu}:
            return target
    clocked = [target for target in load_targets() if isinstance(target, HasClock)]
    if labs and not isinstance(target := find_target(labs[0].target), HasClock):
        problem = f"{labs[0].stack} is not a lab on {' or '.join(able.label for able in clocked)}"
        raise UsageError(f"{problem}: {target.no_clock}", hint=f"when you no longer need it: gpucourse destroy {module_id}")
    return clocked[0]
