"""What the verbs of a target return: what would be built, what was built, what a command changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.deployment import AwsDeployment, Deployment
from gpucourse.model.money import usd_over

if TYPE_CHECKING:
    from gpucourse.labs.aws.choice import Choice
    from gpucourse.labs.aws.money.budget import Budget
    from gpucourse.labs.aws.money.quote import Quote
    from gpucourse.model.cloud import Finding, Market, Quota, QuotaRequest
    from gpucourse.model.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class DeployResult:
    """What `deploy` did, or with `--dry-run` would do, for one lab. `changes` are (action, address)."""

    deployment: Deployment
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


@dataclass(kw_only=True)
class Proposal:
    """What a deploy is about to do; nothing of it is made yet. `planned` is there with `--dry-run`: what would change.
    `leaving`: the nodes that go away or are made again; `ends`: the runs on them whose end was never seen, which the person is
    asked about."""

    planned: DeployResult | None = None
    leaving: frozenset[str] = frozenset()
    ends: tuple[RunRecord, ...] = ()


@dataclass(kw_only=True)
class PricedProposal(Proposal):
    """A proposal that costs money, so that the person is shown it and asked. `quotes` has the price of each lab,
    `later` what a quota does not allow beside the rest, `findings` what was looked at, `budget` the learner's money."""

    later: list[Choice]
    findings: list[Finding]
    budget: Budget
    quotes: list[Quote] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def matters(self) -> bool:
        """Whether anything is to be made that was not there, or a node taken away that was."""
        return any(quote.creates or quote.ends for quote in self.quotes)

    @property
    def fresh(self) -> bool:
        """Whether nothing of these labs stands yet."""
        return False


@dataclass(frozen=True, kw_only=True)
class BuildResult:
    """What came of a proposal: the labs that exist, and an error for each that does not."""

    labs: list[DeployResult]
    errors: list[GpucourseError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ChangeResult:
    """What a command changed about a lab that exists: sentences about what is different now, and what did not go well; the
    lab's end (ISO 8601, UTC) and cost (USD) now."""

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
    """What more time means: the old and the new end, USD for the added time and for everything to the new end. `command`: what
    asks for it.

    `left` is what the budget still holds beside what other labs will cost until their deadlines; None without a budget.
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
        """Whether the lab, left alone until its new end, costs more than is left."""
        return self.left is not None and self.usd_to_end > self.left


@dataclass(frozen=True, kw_only=True)
class StackCost:
    """One lab that will go: what it costs an hour (None: not known), what it has cost, the runs that end with it."""

    deployment: AwsDeployment
    per_hour: Decimal | None
    spent: Decimal
    runs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ModulePrice:
    """What the lab of one module costs while it stands, and for as long as the module usually takes."""

    module: str
    title: str
    machines: str
    usd_per_hour: Decimal
    hours: Decimal

    @property
    def usd(self) -> Decimal:
        """USD for those hours."""
        return usd_over(self.usd_per_hour, self.hours)


@dataclass(frozen=True, kw_only=True)
class PreflightReport:
    """Everything that was found, in the order in which to mend it. `sources` says where the prices were read, and when."""

    region: str
    market: Market
    findings: list[Finding]
    prices: list[ModulePrice]
    sources: list[str]

    @property
    def missing(self) -> int:
        """How many things must be mended before every lab can be built."""
        return sum(finding.state == "missing" for finding in self.findings)

    @property
    def blind(self) -> bool:
        """Whether the account itself could not be looked at."""
        return any(finding.kind == "credentials" and finding.state == "unknown" for finding in self.findings)

    @property
    def usd(self) -> Decimal:
        """USD of all these labs, each for as long as its module usually takes."""
        return sum((price.usd for price in self.prices), Decimal(0))


@dataclass(frozen=True, kw_only=True)
class ShortQuota:
    """A quota that does not hold what the course needs, or of which that is not known; and the request that is open for it."""

    quota: Quota
    open: QuotaRequest | None = None

    @property
    def to_ask(self) -> bool:
        """Whether asking AWS for more makes sense now."""
        return self.open is None and self.quota.enough is False


@dataclass(frozen=True, kw_only=True)
class Stranger:
    """A machine that the learner's known hosts do not know: what it was called, and the fingerprint of the key it shows."""

    said: str
    fingerprint: str


class UnknownHosts(MissingError):
    """Some machines are not known, so nobody can tell whether they are the right ones. A proposal raises it."""

    code = "unknown_hosts"

    def __init__(self, strangers: Sequence[Stranger]) -> None:
        self.strangers = tuple(strangers)
        listed = "; ".join(f"{stranger.said} shows {stranger.fingerprint}" for stranger in strangers)
        flags = " ".join(f"--trust {stranger.fingerprint}" for stranger in strangers)
        super().__init__(
            f"your SSH does not know these machines: {listed}",
            hint=f"log in once with plain ssh, or, if these are their fingerprints: {flags}",
        )
