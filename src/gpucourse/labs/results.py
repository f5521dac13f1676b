"""What the verbs of a target give back: what would stand, what was built, what a command changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.errors import GpucourseError, MissingError
from gpucourse.model.deployment import Deployment

if TYPE_CHECKING:
    from gpucourse.labs.aws.choice import Choice
    from gpucourse.labs.aws.money.quote import Budget, Quote
    from gpucourse.model.cloud import Finding


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
    """What a deploy is about to do; nothing of it is made yet. `planned` is there with `--dry-run`: what would change."""

    planned: DeployResult | None = None


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
    """What came of a proposal: the labs that stand, and an error for each that does not."""

    labs: list[DeployResult]
    errors: list[GpucourseError] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ChangeResult:
    """What a command changed about a lab that stands: sentences about what is different now, and what did not go well; the
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
    """What more time means: the old and the new end, USD for the added time and for everything to the new end.

    `left` is what the budget still holds for the whole course; None without a budget.
    """

    deployment: Deployment
    before: datetime
    expires: datetime
    usd_per_hour: Decimal | None
    usd_added: Decimal
    usd_to_end: Decimal
    left: Decimal | None

    @property
    def above_budget(self) -> bool:
        """Whether the lab, left alone until its new end, costs more than is left."""
        return self.left is not None and self.usd_to_end > self.left


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
