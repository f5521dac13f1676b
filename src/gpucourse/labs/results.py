"""The results of the operations of a target: what would be built, what was built, what a command changed."""

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
    """The result of `deploy` for one lab or, with `--dry-run`, its plan. `changes` are (action, address)."""

    deployment: Deployment
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


@dataclass(kw_only=True)
class Proposal:
    """The plan of a deploy, before anything is built. `planned`: with `--dry-run`, the changes. `removed_nodes`: the nodes that
    are removed or replaced. `ends`: the runs on those nodes that have not been seen to end; the user is asked about them."""

    planned: DeployResult | None = None
    removed_nodes: frozenset[str] = frozenset()
    ends: tuple[RunRecord, ...] = ()


@dataclass(kw_only=True)
class LabProposal(Proposal):
    """The plan for one lab that costs nothing. `start_s` is the monotonic time at which the command began."""

    deployment: Deployment
    changes: list[tuple[str, str]] = field(default_factory=list)
    start_s: float

    def make_result(self, *, healed: Sequence[str] = (), dry_run: bool = False) -> DeployResult:
        """Return the result of this deploy, which is now complete, or with `dry_run` its plan."""
        return DeployResult(
            deployment=self.deployment,
            changes=self.changes,
            dry_run=dry_run,
            seconds=time.monotonic() - self.start_s,
            healed=list(healed),
        )


@dataclass(kw_only=True)
class PricedProposal(Proposal):
    """A proposal that costs money, so that the user has to confirm it. `plans` lists the labs with their prices, `later` the
    labs that the quota does not allow at the same time, `findings` the results of the checks. `budget` is the learner's
    budget."""

    plans: list[LabPlan]
    later: list[Choice]
    findings: list[Finding]
    budget: Budget
    notes: list[str] = field(default_factory=list)

    @property
    def matters(self) -> bool:
        """Return whether the proposal creates a resource or removes a node."""
        return any(plan.creates or plan.ends for plan in self.plans)

    @property
    def usd_until_end(self) -> Decimal:
        """Return what the proposed labs cost, in USD, if they are left alone until they end."""
        return sum((plan.usd_until_end for plan in self.plans if plan.creates), Decimal(0))

    @property
    def fresh(self) -> bool:
        """Return whether nothing of these labs exists yet."""
        return False


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """The result of a build: the labs that exist, and an error for each lab that does not."""

    labs: list[DeployResult]
    errors: list[GpucourseError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ChangeResult:
    """The changes to an existing lab: sentences about what changed and what failed, and the lab's new end (ISO 8601, UTC) and
    cost (USD per hour)."""

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
    """More time for a lab: the old and the new end, and the cost in USD of the added time and of all the time until the new
    end. `command` is the command that requests it.

    `left` is the rest of the budget after what other labs will cost until their deadlines; None without a budget.
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
        """Return whether the lab, if it is left alone until its new end, costs more than is left of the budget."""
        return self.left is not None and self.usd_to_end > self.left


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """One lab that will be removed: its cost per hour (None if unknown), its cost so far, and the runs that end with it."""

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
    """All findings, in the order in which to fix them. `sources` says where the prices were read, and when."""

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
        """Return the price of all these labs, in USD, each for as long as its module usually takes."""
        return sum((price.usd for price in self.prices), Decimal(0))


@dataclass(frozen=True, kw_only=True)
class ShortQuota:
    """A quota that is, or may be, too small for the course, with the open request to raise it, if there is one."""

    quota: Quota
    open: QuotaRequest | None = None

    @property
    def can_be_requested(self) -> bool:
        """Return whether it makes sense now to request an increase from AWS."""
        return self.open is None and self.quota.enough is False


@dataclass(frozen=True, kw_only=True)
class Stranger:
    """A machine that is not in the learner's known hosts: its name as typed, and the fingerprint of the key that it shows."""

    typed: str
    fingerprint: str


class UnknownHosts(MissingError):
    """The error for machines that are not in the learner's known hosts, and so may be the wrong ones. A proposal raises it."""

    code = "unknown_hosts"

    def __init__(self, strangers: Sequence[Stranger]) -> None:
        self.strangers = tuple(strangers)
        fingerprints = "; ".join(f"{stranger.typed} shows {stranger.fingerprint}" for stranger in strangers)
        flags = " ".join(f"--trust {stranger.fingerprint}" for stranger in strangers)
        super().__init__(
            f"these machines are not in your SSH's known hosts: {fingerprints}",
            hint=f"log in once with plain ssh, or, if these are their fingerprints: {flags}",
        )


@dataclass(frozen=True, kw_only=True)
class LabHealth:
    """The state of a lab's nodes and, for a lab that costs money, its `outlook`: what it costs and what will end it."""

    nodes: list[NodeHealth]
    outlook: Outlook | None = None


@dataclass(frozen=True, kw_only=True)
class Health:
    """The health of a target's labs, by stack, and warnings about resources that are on no record and may cost money."""

    labs: dict[str, LabHealth] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
