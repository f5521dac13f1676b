"""The checks before anything costs money: whether the labs can be built, all in one run.

The checks are independent. What AWS does not let us see is `unknown`, never `ok`; no check changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from itertools import chain

from gpucourse.aws import look_account, look_here, look_lab, schedule
from gpucourse.aws.money import PriceBook
from gpucourse.aws.offerings import REGIONS
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, CredentialsError, GpucourseError, PermissionRefused
from gpucourse.model.cloud import Finding, FindingKind, LabNeed, Market
from gpucourse.parallel import run_all

AT_ONCE = 8
POLICY_HINT = "give this identity the course's policy: gpucourse doctor --policy prints it"


@dataclass(frozen=True, kw_only=True)
class LabEnvironment:
    """What the checks need to know besides the account.

    `terraform` is the version that was found, or None. `public_key` is the text of the workspace's key, empty if there is none
    yet. `standing` are the stacks that this workspace knows, which are not leftovers; `regions` are all regions it ever used.
    `ssh_cidr` is the address that the learner gave, which avoids a request to the internet. `budget` and `spent` are USD.
    `request` is the command that requests the quota of these labs from AWS. `whole`: also check what one lab can do without,
    such as a budget's mail. `growth` returns what these labs need of the quota in addition to those of their machines that
    already run.
    """

    market: Market = "on-demand"
    terraform: str | None = None
    public_key: str = ""
    ssh_cidr: str = ""
    book: PriceBook
    budget: Decimal | None = None
    spent: Decimal = Decimal(0)
    standing: frozenset[str] = frozenset()
    regions: tuple[str, ...] = ()
    ask_address: Callable[[], str]
    request: str = "gpucourse doctor --target aws --request-quota"
    whole: bool = False
    growth: Callable[[Sequence[LabNeed]], Sequence[LabNeed]] = lambda labs: labs


def preflight(account: Account, labs: Sequence[LabNeed], known: LabEnvironment) -> list[Finding]:
    """Return all findings about building these labs in this account and region, in the order in which to fix them.

    Without credentials, the account's own checks are one finding. Never raises for an answer of AWS or the network.
    """
    here = [
        *_run_check("Terraform", partial(look_here.terraform, known.terraform)),
        *_run_check("SSH key", partial(look_here.public_key, known.public_key)),
        *_run_check("your address", partial(look_here.address, known.ssh_cidr, known.ask_address)),
    ]
    price = _run_check("price", partial(look_here.prices, known.book, labs, known.market, known.budget, known.spent), "price")
    who = _run_check(look_account.IDENTITY, partial(look_account.identity, account), "credentials")
    if any(finding.state in {"missing", "unknown"} for finding in who):
        rest = Finding(
            what="AWS account",
            state="unknown",
            detail="plan, region, zones, quotas, images, leftovers and permissions cannot be checked without credentials",
            mend=who[-1].mend,
        )
        return [here[0], *who, rest, *here[1:], *price]
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("account plan", partial(look_account.plan, account)),
        ("region", partial(look_account.region, account)),
        ("zones", partial(look_lab.zones, account, labs)),
        ("quota", partial(_quotas, account, labs, known)),
        ("quota of the other market", partial(look_lab.other_market, account, labs, known.market, known.request)),
        *([("spot role", partial(look_account.spot_role, account))] if known.market == "spot" else []),
        *([("storage role", partial(look_account.storage_role, account))] if any(lab.storage_gib for lab in labs) else []),
        ("image", partial(look_lab.images, account, labs)),
        ("room for a network", partial(look_lab.networks, account)),
        ("leftovers", partial(look_lab.leftovers, account, known.standing, known.regions or REGIONS)),
        ("permission to start", partial(look_lab.permission, account, labs, known.market)),
        *([("billing access", partial(look_account.bill_readers, account))] if known.whole else []),
    ]
    backstop = partial(_run_check, schedule.WHAT, lambda: [schedule.readiness(account)], "backstop")
    findings = chain(*run_all([*(partial(_run_check, *look) for look in looks), backstop], limit=AT_ONCE))
    return [here[0], *who, *findings, *here[1:], *price]


def list_blocking(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that must be fixed before a lab can be built."""
    return [finding for finding in findings if finding.state == "missing"]


def _quotas(account: Account, labs: Sequence[LabNeed], known: LabEnvironment) -> list[Finding]:
    """Check the quotas; if one is too small, also the role that a request for more needs."""
    findings = look_lab.quotas(account, known.growth(labs), known.market, known.request)
    if any(finding.state == "missing" for finding in findings):
        findings += _run_check("quota role", partial(look_account.quota_role, account))
    return findings


def _run_check(what: str, look: Callable[[], list[Finding]], kind: FindingKind = "other") -> list[Finding]:
    """Return the findings of the check, with this kind; an error of AWS becomes a finding."""
    try:
        return [replace(finding, kind=kind) for finding in look()]
    except PermissionRefused as error:
        finding = Finding(
            what=what, state="unknown", detail=f"not allowed to look: {error.action}", mend=POLICY_HINT, kind=kind
        )
    except CredentialsError as error:
        finding = Finding(what=what, state="missing", detail=error.what, mend=error.hint, kind=kind)
    except CloudError as error:
        finding = Finding(what=what, state="unknown", detail=error.what, mend=error.hint, kind=kind)
    except GpucourseError as error:
        finding = Finding(what=what, state="missing", detail=error.what, mend=error.hint, kind=kind)
    return [finding]
