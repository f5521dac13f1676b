"""The results of the operations of a target: the plan of a lab, the labs that were built, and the changes that a command
made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.cloud import Finding, Market, Quota, QuotaRequest
from gpucourse.model.deployment import AwsDeployment, Deployment

if TYPE_CHECKING:
    from gpucourse.labs.aws.budget import Budget
    from gpucourse.labs.aws.choice import Choice
    from gpucourse.labs.aws.plan import LabPlan
    from gpucourse.labs.aws.status import Outlook
    from gpucourse.model.deployment import NodeHealth
    from gpucourse.model.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class DeployResult:
    """The result of `deploy` for one lab or, with `--dry-run`, its plan. `changes` lists (action, address)."""

    deployment: Deployment
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


@dataclass(kw_only=True)
class Proposal:
    """The plan of a deploy, before anything is built.

    `planned`: the changes, with `--dry-run`.
    `removed_nodes`: the nodes that are removed or replaced.
    `ends`: the runs on those nodes that have no recorded end; the user must agree to end them.
    """

    planned: DeployResult | None = None
    removed_nodes: frozenset[str] = frozenset()
    ends: tuple[RunRecord, ...] = ()


@dataclass(kw_only=True)
class LabProposal(Proposal):
    """The plan for one lab that costs nothing. `start_s`: when the command began (monotonic clock)."""

    deployment: Deployment
    changes: list[tuple[str, str]] = field(default_factory=list)
    start_s: float

    def make_result(self, *, healed: Sequence[str] = (), dry_run: bool = False) -> DeployResult:
        """Return the result of this deploy, now complete, or its plan with `dry_run`."""
        return DeployResult(
            deployment=self.deployment,
            changes=self.changes,
            dry_run=dry_run,
            seconds=time.monotonic() - self.start_s,
            healed=list(healed),
        )


@dataclass(kw_only=True)
class PricedProposal(Proposal):
    """A proposal that costs money, so that the user has to confirm it.

    `plans`: the labs with their prices.
    `later`: the labs that the quota does not allow at the same time as these.
    `findings`: the results of the preflight checks.
    `over_budget`: the labs may cost more than the remaining budget.
    `command`: the command that was typed.
    """

    plans: list[LabPlan]
    later: list[Choice]
    findings: list[Finding]
    budget: Budget
    notes: list[str] = field(default_factory=list)
    over_budget: bool = False
    command: str = ""

    @property
    def matters(self) -> bool:
        """Return whether the proposal creates a resource or removes a node."""
        return any(plan.creates or plan.ends for plan in self.plans)

    @property
    def usd_until_end(self) -> Decimal:
        """Return the cost of the proposed labs, in USD, if they exist until their deadlines."""
        return sum((plan.usd_until_end for plan in self.plans if plan.creates), Decimal(0))

    @property
    def fresh(self) -> bool:
        """Return whether no part of these labs exists yet."""
        return all(plan.fresh for plan in self.plans)


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """The result of a build: the labs that exist, and an error for each lab that does not."""

    labs: list[DeployResult]
    errors: list[GpucourseError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ChangeResult:
    """The changes to an existing lab: sentences that say what changed and what failed.

    `expires`: the lab's deadline (ISO 8601, UTC). It is empty if nothing ends the lab then, because it is stopped.
    `usd_per_hour`: its cost from now on.
    """

    stack: str
    module: str
    title: str
    changed: list[str]
    warnings: list[str] = field(default_factory=list)
    expires: str = ""
    usd_per_hour: Decimal | None = None
    next: str = ""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """More time for a lab, with its price.

    `before` and `expires`: the old and the new end.
    `usd_added`: the cost of the added time.
    `usd_to_end`: the cost from now until the new end.
    `left`: the budget that remains after the future costs of other labs; None without a budget.
    `command`: the command that requests the extension.
    """

    deployment: Deployment
    before: datetime
    expires: datetime
    usd_per_hour: Decimal | None
    usd_added: Decimal
    usd_to_end: Decimal
    left: Decimal | None
    command: str

    @property
    def above_budget(self) -> bool:
        """Return whether the cost of the lab until its new end exceeds the remaining budget."""
        return self.left is not None and self.usd_to_end > self.left


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """One lab that will be removed, with its cost and the runs that end with it.

    `per_hour`: its cost in USD per hour; None if unknown.
    `spent`: its cost so far.
    """

    deployment: AwsDeployment
    per_hour: Decimal | None
    spent: Decimal
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModulePrice:
    """The price of a module's lab per hour, and for as long as the module usually takes."""

    module: str
    title: str
    machines: str
    usd_per_hour: Decimal
    hours: Decimal

    @property
    def usd(self) -> Decimal:
        """Return the price for as long as the module usually takes, in USD."""
        return self.usd_per_hour * self.hours


@dataclass(frozen=True, kw_only=True)
class PreflightReport:
    """All findings, in the order in which to fix them. `sources`: where and when the prices were read."""

    region: str
    market: Market
    findings: list[Finding]
    prices: list[ModulePrice]
    sources: list[str]

    @property
    def missing(self) -> int:
        """Return how many findings must be fixed before every lab can be built."""
        return sum(finding.state == "missing" for finding in self.findings)

    @property
    def blind(self) -> bool:
        """Return whether the account itself could not be checked."""
        return any(finding.kind == "credentials" and finding.state == "unknown" for finding in self.findings)

    @property
    def usd(self) -> Decimal:
        """Return the total price in USD of one lab per module in `prices`, each running for as long as the module usually
        takes."""
        return sum((price.usd for price in self.prices), Decimal(0))


@dataclass(frozen=True, kw_only=True)
class LoginReport:
    """A report on the login node of a cluster. `settings`: lines for gpucourse.yaml that fit the cluster."""

    login: str
    findings: list[Finding]
    settings: str


@dataclass(frozen=True, kw_only=True)
class ShortQuota:
    """A quota that is, or may be, too small for the course. `open`: a request to raise it that AWS has not answered yet."""

    quota: Quota
    open: QuotaRequest | None = None

    @property
    def can_be_requested(self) -> bool:
        """Return whether the course should request an increase from AWS now."""
        return self.open is None and self.quota.enough is False


@dataclass(frozen=True, kw_only=True)
class Stranger:
    """A machine that is not in the learner's known hosts: its name as typed, and the fingerprint of its key."""

    typed: str
    fingerprint: str


class UnknownHosts(MissingError):
    """The error for machines that are not in the learner's known hosts and may therefore be the wrong ones."""

    code = "unknown_hosts"

    def __init__(self, strangers: Sequence[Stranger]) -> None:
        self.strangers = tuple(strangers)
        fingerprints = "; ".join(f"{stranger.typed} shows {stranger.fingerprint}" for stranger in strangers)
        flags = " ".join(f"--trust {stranger.fingerprint}" for stranger in strangers)
        super().__init__(
            f"these machines are not in your SSH's known hosts: {fingerprints}",
            hint=f"log in once with plain ssh. Or, if you know that these are the right fingerprints, add: {flags}",
        )


@dataclass(frozen=True, kw_only=True)
class LabHealth:
    """The state of a lab's nodes.

    `outlook`: for a lab that costs money, its cost and its end.
    `waits`: why runs wait in the queue of a cluster, by the runs' ids.
    """

    nodes: list[NodeHealth]
    outlook: Outlook | None = None
    waits: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Health:
    """The health of a target's labs, by stack, and warnings about unrecorded resources that may cost money."""

    labs: dict[str, LabHealth] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
