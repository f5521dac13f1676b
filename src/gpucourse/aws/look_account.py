"""Checks of the account itself: the identity, its plan, its region, AWS's roles in it, and who is notified of its cost."""

from __future__ import annotations

from gpucourse.aws.failure_table import QUOTA_ROLE, SPOT_ROLE, STORAGE_ROLE
from gpucourse.aws.offerings import DEFAULT_REGION, REGIONS
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, PermissionRefused
from gpucourse.model.cloud import Finding

_UPGRADE = "upgrade to the Paid plan in the Billing console: https://console.aws.amazon.com/billing/home#/account"
_OPEN_BILLING = (
    "the root user, once: https://console.aws.amazon.com/billing/home#/account, 'IAM user and role access to Billing "
    "information', Activate; this identity: gpucourse doctor --policy"
)
_MAKE_BUDGET = "whoever manages the account, once: gpucourse doctor --setup prints the file that makes a budget with a mail"
IDENTITY = "credentials"


def identity(account: Account) -> list[Finding]:
    """Check that AWS knows the identity (check 2). Raises CredentialsError."""
    who = account.identity()
    if who.root:
        detail = f"account {who.account}, as its root user, who may do everything, also by mistake"
        mend = "make a user with the course's policy (gpucourse doctor --policy) and sign in as that user"
        return [Finding(what=IDENTITY, state="warning", detail=detail, mend=mend)]
    return [Finding(what=IDENTITY, state="ok", detail=f"account {who.account}, as {who.arn.rpartition(':')[2]}")]


def plan(account: Account) -> list[Finding]:
    """Check that the account is not on the Free plan, which starts no GPU instance (check 3)."""
    what = "account plan"
    try:
        answer = account.call("freetier", "get_account_plan_state")
    except CloudError as error:
        if error.kind != "gone":
            raise
        detail = "AWS has no plan on record for this account; accounts older than the plans (July 2025) have none"
        return [Finding(what=what, state="unknown", detail=detail, mend="the first deploy will show it")]
    kind, status = str(answer.get("accountPlanType", "")), str(answer.get("accountPlanStatus", ""))
    credit = answer.get("accountPlanRemainingCredits") or {}
    left = f", {credit['amount']:.2f} {credit.get('unit', 'USD')} of credits left" if "amount" in credit else ""
    if kind == "FREE":
        detail = f"Free plan{left}: it starts no GPU instance, not even a t3.medium"
        return [Finding(what=what, state="missing", detail=detail, mend=_UPGRADE)]
    if status == "EXPIRED":
        return [Finding(what=what, state="missing", detail="the account's plan has expired", mend=_UPGRADE)]
    if kind == "PAID":
        return [Finding(what=what, state="ok", detail=f"Paid plan{left}")]
    return [Finding(what=what, state="unknown", detail=f"AWS calls it '{kind}'", mend="the first deploy will show it")]


def region(account: Account) -> list[Finding]:
    """Check that the region exists and is open to this account (check 4)."""
    what = "region"
    # A region that does not exist cannot answer, so the call goes to a region of the course.
    place = account if account.region in REGIONS else account.in_region(DEFAULT_REGION)
    regions = place.call("ec2", "describe_regions", AllRegions=True)["Regions"]
    known = {entry["RegionName"]: entry.get("OptInStatus", "") for entry in regions}
    status = known.get(account.region)
    if status is None:
        mend = f"choose one with --region, such as {DEFAULT_REGION}; all: {', '.join(sorted(known))}"
        return [Finding(what=what, state="missing", detail=f"AWS has no region {account.region}", mend=mend)]
    if status == "not-opted-in":
        mend = f"aws account enable-region --region-name {account.region} (takes minutes), or choose another --region"
        return [Finding(what=what, state="missing", detail=f"{account.region} is not enabled for this account", mend=mend)]
    return [Finding(what=what, state="ok", detail=account.region)]


def bill_readers(account: Account) -> list[Finding]:
    """Check that this identity sees what the account costs, and an AWS budget sends mail (check 13). Listing budgets costs
    nothing."""
    access, mail = "billing access", "budget mail"
    number = account.identity().account
    try:
        budgets = [entry["BudgetName"] for entry in account.pages("budgets", "describe_budgets", "Budgets", AccountId=number)]
        telling = next((name for name in budgets if _tells_somebody(account, number, name)), "")
    except PermissionRefused as error:
        refused = f"not allowed: {error.action}"
        return [
            Finding(what=access, state="warning", detail=refused, mend=_OPEN_BILLING),
            Finding(what=mail, state="warning", detail=f"not known: {refused}", mend=_OPEN_BILLING),
        ]
    seen = Finding(what=access, state="ok", detail="this identity may see the account's budgets")
    if telling:
        return [seen, Finding(what=mail, state="ok", detail=f"the budget {telling} sends mail to somebody")]
    lacks = "no budget of AWS sends mail to anybody" if budgets else "the account has no AWS budget"
    return [seen, Finding(what=mail, state="warning", detail=lacks, mend=_MAKE_BUDGET)]


def _tells_somebody(account: Account, number: str, budget: str) -> bool:
    """Return whether the budget has a notification; AWS accepts none without a recipient."""
    known = {"AccountId": number, "BudgetName": budget}
    return any(True for _notice in account.pages("budgets", "describe_notifications_for_budget", "Notifications", **known))


def spot_role(account: Account) -> list[Finding]:
    """Check that AWS's role for spot instances exists, which the account's first spot instance needs (check 7)."""
    return [_service_role(account, "spot role", "AWSServiceRoleForEC2Spot", "spot instance", SPOT_ROLE)]


def storage_role(account: Account) -> list[Finding]:
    """Check that AWS's role for EFS exists, which the account's first mount target needs (check 7)."""
    return [_service_role(account, "storage role", "AWSServiceRoleForAmazonElasticFileSystem", "mount target", STORAGE_ROLE)]


def quota_role(account: Account) -> list[Finding]:
    """Check that AWS's role for Service Quotas exists, which the account's first quota request needs (check 6)."""
    return [_service_role(account, "quota role", "AWSServiceRoleForServiceQuotas", "request for a quota", QUOTA_ROLE)]


def _service_role(account: Account, what: str, role: str, first: str, mend: str) -> Finding:
    try:
        account.call("iam", "get_role", RoleName=role)
    except CloudError as error:
        if error.kind != "gone":
            raise
        detail = f"there is no {role} yet; AWS makes it with the account's first {first}, where this identity may"
        return Finding(what=what, state="warning", detail=detail, mend=mend)
    return Finding(what=what, state="ok", detail=role)
