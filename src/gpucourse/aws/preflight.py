"""Check that the labs can be built, before anything costs money.

Each check is a function that returns a verdict or a list of findings. `CHECKS` lists the checks of the account. Findings should
be fixed in the order of this list. No check depends on another one. A fact that AWS does not let us see is `unknown`, never
`ok`. No check changes anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any, Literal

from gpucourse.aws import offerings, quota, resource_scan, schedule, tags
from gpucourse.aws.caller import validate_cidr
from gpucourse.aws.failure_table import QUOTA_ROLE, SPOT_ROLE, STORAGE_ROLE
from gpucourse.aws.money import PriceBook, estimate, usd_over, usd_per_hour
from gpucourse.aws.quota import Quotas
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, GpucourseError, MissingError, PermissionRefused
from gpucourse.model.cloud import CloudResource, Finding, FindingKind, LabNeed, Market, Offers, Quota, State
from gpucourse.parallel import run_all

AT_ONCE = 8
MIN_TERRAFORM = (1, 6, 1)  # 1.6.0 considers HashiCorp's own signing key expired
POLICY_HINT = "give this identity the course's policy: gpucourse doctor --policy prints it"
_GET_TERRAFORM = "pip install 'gpucourse[local]' includes one; or see developer.hashicorp.com/terraform/install"
_UPGRADE = "upgrade to the Paid plan in the Billing console: https://console.aws.amazon.com/billing/home#/account"
_OPEN_BILLING = (
    "the root user opens this page once: https://console.aws.amazon.com/billing/home#/account, 'IAM user and role access to "
    "Billing information', Activate; this identity needs the policy that gpucourse doctor --policy prints"
)
_MAKE_BUDGET = (
    "the account's administrator does this once: gpucourse doctor --setup prints the file for a budget that sends mail"
)
_LEAKS = "see what it is: gpucourse leaks; remove it: gpucourse leaks --clean"
_FREE = "meanwhile, free of charge: --target here on a laptop with a GPU, or --target hosts on machines that you have"
_DEPLOY_SHOWS = "the first deploy will show it"


@dataclass(frozen=True, kw_only=True)
class LabEnvironment:
    """The input of the checks: the quotas of the account, the planned labs, and further facts. Amounts are in USD.

    `find_offers`: returns the zones that offer the labs' types.
    `terraform`: the version that was found, or None.
    `public_key`: the text of the workspace's key; empty if there is no key yet.
    `ssh_cidr`: the address that the learner typed, which avoids a request to the internet.
    `recorded_stacks`: the stacks of this workspace, which are not leftovers.
    `regions`: all regions that this workspace has ever used.
    `request`: the command that requests the labs' quota from AWS.
    `whole`: also check things that a single lab does not need, such as the address for budget alerts.
    `growth`: returns how much quota these labs need beyond what their running machines already use.
    """

    quotas: Quotas
    labs: Sequence[LabNeed]
    find_offers: Callable[[], Offers]
    market: Market = "on-demand"
    terraform: str | None = None
    public_key: str = ""
    ssh_cidr: str = ""
    book: PriceBook
    budget: Decimal | None = None
    spent: Decimal = Decimal(0)
    recorded_stacks: frozenset[str] = frozenset()
    regions: tuple[str, ...] = ()
    ask_address: Callable[[], str]
    request: str = "gpucourse doctor --target aws --request-quota"
    whole: bool = False
    growth: Callable[[Sequence[LabNeed]], Sequence[LabNeed]] = lambda labs: labs

    @property
    def account(self) -> Account:
        """Return the account, which makes its calls in the region of the labs."""
        return self.quotas.account


Verdict = tuple[State, str, str]
"""The single finding of a check: its state, detail and remedy. Its name is the check's."""


@dataclass(frozen=True)
class Check:
    """One check. It is skipped unless it `applies`.

    `what`: the name of its finding, if the check returns a verdict or fails.
    """

    what: str
    find: Callable[[LabEnvironment], Verdict | list[Finding]]
    kind: FindingKind = "other"
    applies: Callable[[LabEnvironment], bool] = lambda _facts: True


def preflight(facts: LabEnvironment) -> list[Finding]:
    """Return all findings about building these labs, in the order in which to fix them.

    Without credentials, all checks of the account become one finding. Never raises for an error from AWS or the network.
    """
    first, identity = _make(TERRAFORM, facts), _make(IDENTITY, facts)
    if any(finding.state in {"missing", "unknown"} for finding in identity):
        detail = "plan, region, zones, quotas, images, leftovers and permissions cannot be checked without credentials"
        account = [Finding(what="AWS account", state="unknown", detail=detail, mend=identity[-1].mend)]
    else:
        checks = [partial(_make, check, facts) for check in CHECKS if check.applies(facts)]
        account = list(chain(*run_all(checks, limit=AT_ONCE)))
    return [*first, *identity, *account, *chain(*(_make(check, facts) for check in HERE))]


def list_blocking(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that must be fixed before a lab can be built."""
    return [finding for finding in findings if finding.state == "missing"]


def _make(check: Check, facts: LabEnvironment) -> list[Finding]:
    """Run one check and return its findings, marked with the check's kind. An AWS error becomes a finding."""
    verdict: Verdict | list[Finding]
    try:
        verdict = check.find(facts)
    except PermissionRefused as error:
        verdict = "unknown", f"not allowed to look: {error.action}", POLICY_HINT
    except GpucourseError as error:
        verdict = "unknown" if isinstance(error, CloudError) else "missing", error.what, error.hint
    if isinstance(verdict, list):
        return [replace(finding, kind=check.kind) for finding in verdict]
    state, detail, mend = verdict
    return [Finding(what=check.what, state=state, detail=detail, mend=mend, kind=check.kind)]


def _find_terraform(facts: LabEnvironment) -> Verdict:
    """Check that Terraform is installed, in a version that can fetch AWS's provider."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)", facts.terraform or "")
    if facts.terraform is None or match is None:
        return "missing", facts.terraform or "not found", _GET_TERRAFORM
    if tuple(map(int, match.groups())) < MIN_TERRAFORM:
        detail = f"{facts.terraform} cannot check the signature of AWS's provider; 1.6.1 and newer can"
        return "missing", detail, _GET_TERRAFORM
    return "ok", facts.terraform, ""


def _find_key(facts: LabEnvironment) -> Verdict:
    """Check that EC2 accepts the key that opens the nodes."""
    if not facts.public_key:
        return "ok", "created with the first deploy", ""
    kind = facts.public_key.split(maxsplit=1)[0]
    if kind not in {"ssh-ed25519", "ssh-rsa"}:
        return "missing", f"EC2 accepts ed25519 and RSA keys, not {kind}", "create another: ssh-keygen -t ed25519"
    return "ok", kind, ""


def _find_address(facts: LabEnvironment) -> Verdict:
    """Check that this computer has a public IPv4 address, to which SSH will be opened. Raises MissingError, UsageError."""
    cidr = validate_cidr(facts.ssh_cidr) if facts.ssh_cidr else facts.ask_address()
    return "ok", f"SSH will be open only to {cidr}", ""


def _find_price(facts: LabEnvironment) -> Verdict:
    """Check that the cost of the labs, for the time that they usually take, is within the remaining budget."""
    by_lab = [(lab, estimate(facts.book, lab, market=facts.market)) for lab in facts.labs]
    total = sum((usd_over(usd_per_hour(charges), lab.hours) for lab, charges in by_lab), Decimal(0))
    hourly = max((usd_per_hour(charges) for _lab, charges in by_lab), default=Decimal(0))
    rates = [charge.rate for _lab, charges in by_lab for charge in charges]
    oldest = min((rate.date for rate in rates), default="")
    notes = dict.fromkeys(rate.note for rate in rates if rate.note)
    labs = f"{len(by_lab)} labs" if len(by_lab) != 1 else "1 lab"
    detail = f"about ${total:.2f} for {labs}, for as long as they usually take; at most ${hourly:.2f}/h; prices of {oldest}"
    detail += f" ({'; '.join(notes)})" if notes else ""
    if facts.budget is not None and facts.spent + total > facts.budget:
        mend = "use --spot or a smaller GPU, raise the budget in gpucourse.yaml, or build fewer modules"
        return "warning", f"{detail}; ${facts.budget - facts.spent:.2f} of the budget is left", mend
    return "ok", detail, ""


def _find_identity(facts: LabEnvironment) -> Verdict:
    """Check that AWS recognises the identity. Raises CredentialsError."""
    identity = facts.account.identity()
    if identity.root:
        detail = f"account {identity.account}, as its root user, who may do anything, even by mistake"
        return "warning", detail, "create a user with the course's policy (gpucourse doctor --policy) and sign in as that user"
    return "ok", f"account {identity.account}, as {identity.arn.rpartition(':')[2]}", ""


def _find_plan(facts: LabEnvironment) -> Verdict:
    """Check that the account is not on the Free plan, which does not allow GPU instances."""
    answer = facts.account.call_if_exists("freetier", "get_account_plan_state")
    if answer is None:
        detail = "AWS has no plan on record for this account; accounts from before July 2025 have none"
        return "unknown", detail, _DEPLOY_SHOWS
    kind, status = str(answer.get("accountPlanType", "")), str(answer.get("accountPlanStatus", ""))
    credit = answer.get("accountPlanRemainingCredits") or {}
    rest_of_credits = f", {credit['amount']:.2f} {credit.get('unit', 'USD')} of credits left" if "amount" in credit else ""
    if kind == "FREE":
        return "missing", f"Free plan{rest_of_credits}: it allows no GPU instance, and not even a t3.medium", _UPGRADE
    if status == "EXPIRED":
        return "missing", "the account's plan has expired", _UPGRADE
    if kind == "PAID":
        return "ok", f"Paid plan{rest_of_credits}", ""
    return "unknown", f"AWS calls it '{kind}'", _DEPLOY_SHOWS


def _find_region(facts: LabEnvironment) -> Verdict:
    """Check that the region exists and is open to this account."""
    account = facts.account
    # A region that does not exist cannot answer, so the call goes to a region of the course.
    place = account if account.region in offerings.REGIONS else account.in_region(offerings.DEFAULT_REGION)
    regions = place.call("ec2", "describe_regions", AllRegions=True)["Regions"]
    by_name = {entry["RegionName"]: entry.get("OptInStatus", "") for entry in regions}
    status = by_name.get(account.region)
    if status is None:
        mend = f"choose one with --region, such as {offerings.DEFAULT_REGION}; all: {', '.join(sorted(by_name))}"
        return "missing", f"AWS has no region {account.region}", mend
    if status == "not-opted-in":
        mend = f"aws account enable-region --region-name {account.region} (takes minutes), or choose another --region"
        return "missing", f"{account.region} is not enabled for this account", mend
    return "ok", account.region, ""


def find_bill_readers(facts: LabEnvironment) -> list[Finding]:
    """Check that this identity can see the costs of the account, and that an AWS budget sends mail. Listing budgets is free."""
    access, mail, account = "billing access", "budget mail", facts.account
    number = account.identity().account
    try:
        budgets = [entry["BudgetName"] for entry in account.pages("budgets", "describe_budgets", "Budgets", AccountId=number)]
        budget = next((name for name in budgets if _sends_mail(account, number, name)), "")
    except PermissionRefused as error:
        refusal = f"not allowed: {error.action}"
        return [
            Finding(what=access, state="warning", detail=refusal, mend=_OPEN_BILLING),
            Finding(what=mail, state="warning", detail=f"not known: {refusal}", mend=_OPEN_BILLING),
        ]
    finding = Finding(what=access, state="ok", detail="this identity may see the account's budgets")
    if budget:
        return [finding, Finding(what=mail, state="ok", detail=f"the budget {budget} sends mail")]
    lacks = "no AWS budget sends mail" if budgets else "the account has no AWS budget"
    return [finding, Finding(what=mail, state="warning", detail=lacks, mend=_MAKE_BUDGET)]


def _sends_mail(account: Account, number: str, budget: str) -> bool:
    """Return whether the budget has a notification. AWS accepts no notification without a recipient."""
    request = {"AccountId": number, "BudgetName": budget}
    return any(True for _notice in account.pages("budgets", "describe_notifications_for_budget", "Notifications", **request))


def _find_role(role: str, first: str, remedy: str, facts: LabEnvironment) -> Verdict:
    """Check that one of AWS's own roles exists. The account needs it for its first use of a service.

    `first`: the account's first action that needs the role, in the words of the message. `remedy`: the command to type if the
    role is missing.
    """
    if facts.account.call_if_exists("iam", "get_role", RoleName=role) is None:
        detail = (
            f"there is no {role} yet; AWS creates it at the account's first {first}, "
            "if this identity has permission to create it"
        )
        return "warning", detail, remedy
    return "ok", role, ""


def _find_zones(facts: LabEnvironment) -> list[Finding]:
    """Check, for each lab, that one zone offers all its types: the nodes of a lab must be in one zone."""
    findings: list[Finding] = []
    zone_offers = facts.find_offers()
    for lab in facts.labs:
        subject, types = f"zones for module {lab.module}", frozenset(machines.instance_type for machines in lab.machines)
        type_names = " with ".join(sorted(types))
        if common := zone_offers.find_common_zones(types):
            findings.append(Finding(what=subject, state="ok", detail=f"{type_names} in {', '.join(common)}"))
            continue
        region = zone_offers.region
        unoffered_types = ", ".join(sorted(kind for kind in types if not zone_offers.find_common_zones(frozenset({kind}))))
        detail = f"no zone of {region} offers {unoffered_types}" if unoffered_types else f"no zone offers {type_names} together"
        other_regions = ", ".join(name for name in offerings.REGIONS if name != region)
        mend = f"another --gpu, or another --region: {other_regions}"
        findings.append(Finding(what=subject, state="missing", detail=detail, mend=mend))
    return findings


def find_quotas(facts: LabEnvironment) -> list[Finding]:
    """Check that every quota allows what the largest lab needs in addition to the running instances.

    If a quota is too small, also check the role that is needed to request more.
    """
    labs = facts.growth(facts.labs)
    findings = [
        describe_quota(facts.account, labs, facts.market, item, facts.request)
        for item in facts.quotas.assess(labs, facts.market)
    ]
    return [*findings, *(_make(_QUOTA_ROLE, facts) if list_blocking(findings) else [])]


def _find_other_quotas(facts: LabEnvironment) -> list[Finding]:
    """Check the quotas of the market that was not chosen, since raising a quota takes days.

    A quota that is too small is only a warning here.
    """
    other_market: Market = "on-demand" if facts.market == "spot" else "spot"
    needs = quota.needs(facts.labs, facts.market)
    scope = f"counts only {'with' if other_market == 'spot' else 'without'} --spot"
    findings: list[Finding] = []
    for item in facts.quotas.assess(facts.labs, other_market):
        if (item.code, item.market) not in needs:
            finding = describe_quota(facts.account, facts.labs, other_market, item, facts.request)
            short = finding.state == "missing"
            findings.append(replace(finding, state="warning", detail=f"{finding.detail}; {scope}") if short else finding)
    return findings


def describe_quota(account: Account, labs: Sequence[LabNeed], market: Market, vcpu_quota: Quota, request: str) -> Finding:
    """Return a finding that says whether the quota is large enough for the largest of these labs.

    `request`: the command that requests more.
    """
    subject = f"quota {vcpu_quota.code} ({vcpu_quota.market})"
    has = "unknown" if vcpu_quota.limit is None else str(vcpu_quota.limit)
    usage = "unknown" if vcpu_quota.used is None else str(vcpu_quota.used)
    detail = f"{vcpu_quota.name} in {vcpu_quota.region}: needed {vcpu_quota.needed} vCPU, limit {has}, in use {usage}"
    if vcpu_quota.enough:
        return Finding(what=subject, state="ok", detail=detail)
    page = quota.console_page(vcpu_quota)
    if vcpu_quota.enough is None:
        return Finding(what=subject, state="unknown", detail=f"{detail}; {vcpu_quota.reason}", mend=f"see {page}")
    types = quota.needs(labs, market)[vcpu_quota.code, vcpu_quota.market]
    free = (vcpu_quota.limit if vcpu_quota.free is None else vcpu_quota.free) or 0
    fit = [module for module, vcpus in types.items() if vcpus <= free]
    if len(types) > 1:
        detail += (
            f"; enough for module{'s' if len(fit) != 1 else ''} {', '.join(fit)}" if fit else "; not enough for any module"
        )
    if waiting := _describe_open_request(account, vcpu_quota):
        mend = f"wait for AWS's answer: {page}; {_FREE}"
        return Finding(what=subject, state="missing", detail=f"{detail}; {waiting}", mend=mend)
    larger_quota = f"{request}{' --spot' if market == 'spot' else ''}"
    mend = f"{larger_quota} (people at AWS decide within hours or days, and may grant less), or {page}"
    smaller = _offer_smaller(labs, vcpu_quota, free)
    return Finding(what=subject, state="missing", detail=detail, mend="; ".join([*smaller, mend, _FREE]))


def _offer_smaller(labs: Sequence[LabNeed], vcpu_quota: Quota, free: int) -> list[str]:
    """Return the commands that build these labs with smaller nodes, if their usual nodes do not fit the quota but smaller ones
    do."""
    key, names = (vcpu_quota.code, vcpu_quota.market), list[str]()
    for lab in labs:
        usual = quota.needs([lab], vcpu_quota.market).get(key, {}).get(lab.module, 0)
        smaller = lab.with_workers(instance_type=lab.smaller or lab.machines[-1].instance_type)
        vcpus = quota.needs([smaller], vcpu_quota.market).get(key, {}).get(lab.module, 0)
        if not vcpus <= free < usual:
            continue
        workers = smaller.machines[-1]
        words = ["gpucourse", "deploy", lab.module, "--target", "aws", "--nodes", str(workers.count)]
        words += ["--gpu", offerings.instance_type(lab.smaller).gpu.lower(), "--size", lab.smaller.rpartition(".")[2]]
        words += ["--region", vcpu_quota.region] if vcpu_quota.region != offerings.DEFAULT_REGION else []
        words += ["--spot"] if vcpu_quota.market == "spot" else []
        names.append(f"{shlex.join(words)} fits: {workers.count} x {lab.smaller}, {vcpus} vCPU")
    return names


def _describe_open_request(account: Account, vcpu_quota: Quota) -> str:
    try:
        request = quota.open_request(account, vcpu_quota.code)
    except GpucourseError:
        return ""
    return f"a request for {request.wanted} is open ({request.status})" if request else ""


def _find_images(facts: LabEnvironment) -> list[Finding]:
    """Check that the machine images of the labs exist in this region, and fit on the root disks."""
    findings: list[Finding] = []
    for kind in _list_image_kinds(facts.labs):
        image = resolve(facts.account, kind)
        detail = f"{image.id} ({image.parameter.removeprefix('/aws/service/')}), root disk of at least {image.root_gib} GiB"
        findings.append(Finding(what=f"image ({kind})", state="ok", detail=detail))
    return findings


def _list_image_kinds(labs: Sequence[LabNeed]) -> list[ImageKind]:
    return sorted({_image_kind(machines.instance_type) for lab in labs for machines in lab.machines})


def _image_kind(instance_type: str) -> ImageKind:
    return "pytorch" if offerings.instance_type(instance_type).gpus else "ubuntu"


def _find_network_room(facts: LabEnvironment) -> Verdict:
    """Check that the region's limit allows one more VPC: each lab needs a VPC of its own."""
    account, count = facts.account, quota.count_networks(facts.account)
    try:
        limit = quota.limit(account, quota.VPCS, "vpc")
    except (CloudError, PermissionRefused) as error:
        detail = f"{count} VPCs in {account.region}; the limit is not known: {error.what}"
        return "unknown", detail, "a new account may have 5 in a region"
    full = count >= limit
    mend = f"remove one that is not needed. {_LEAKS}" if full else ""
    return "missing" if full else "ok", f"{count} of {limit} VPCs in {account.region}", mend


def _find_leftovers(facts: LabEnvironment) -> list[Finding]:
    """Check that every resource with the course's tags belongs to a stack of this workspace."""
    subject = "leftovers"
    regions = dict.fromkeys([facts.account.region, *(facts.regions or offerings.REGIONS)])
    resources = resource_scan.find(facts.account, regions=regions, strict=True)
    leftovers = [
        resource for resource in resources if resource.seen and resource.tags.get("Stack") not in facts.recorded_stacks
    ]
    findings: list[Finding] = []
    if leftovers:
        stacks = sorted({resource.tags.get("Stack", "unknown") for resource in leftovers})
        expired_count = sum(map(_is_expired, leftovers))
        detail = f"{len(leftovers)} resources of {len(stacks)} lab(s) without a record in this workspace ({', '.join(stacks)})"
        detail += f"; {expired_count} past their deadline" if expired_count else ""
        findings.append(Finding(what=subject, state="warning", detail=detail, mend=_LEAKS))
    if unseen := sorted({resource.kind for resource in resources if not resource.seen}):
        detail = f"not allowed to list: {', '.join(unseen)}"
        findings.append(Finding(what=subject, state="unknown", detail=detail, mend=POLICY_HINT))
    return findings or [Finding(what=subject, state="ok", detail="none in the regions that this workspace uses")]


def _is_expired(resource: CloudResource) -> bool:
    try:
        return datetime.fromisoformat(resource.tags["Expires"]) < datetime.now(UTC)
    except (KeyError, ValueError, TypeError):
        return False


def _find_permission(facts: LabEnvironment) -> list[Finding]:
    """Check that this identity can start each type. EC2's dry run tests the permission, but neither the quota nor the
    capacity."""
    by_type = {machines.instance_type: machines for lab in facts.labs for machines in lab.machines}
    try:
        ids = {kind: resolve(facts.account, kind).id for kind in _list_image_kinds(facts.labs)}
    except MissingError as error:  # the finding about the images has the remedy
        return [Finding(what="permission to start", state="unknown", detail=error.what, mend=error.hint)]
    return [
        _may_start(facts.account, name, ids[_image_kind(name)], machines.market(facts.market))
        for name, machines in sorted(by_type.items())
    ]


def _may_start(account: Account, name: str, image: str, market: Market) -> Finding:
    subject = f"permission to start {name}"
    request: dict[str, Any] = {
        "ImageId": image,
        "InstanceType": name,
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags.to_aws_tags(tags.make_project_tags())}],
    }
    if market == "spot":
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    try:
        account.call("ec2", "run_instances", DryRun=True, **request)
    except PermissionRefused as error:
        return Finding(what=subject, state="missing", detail=f"refused: {error.action}", mend=POLICY_HINT)
    except CloudError as error:
        if error.cloud_code == "DryRunOperation":
            return Finding(what=subject, state="ok", detail="a dry run succeeded")
        if error.kind in {"account", "credentials"}:
            return Finding(what=subject, state="missing", detail=error.what, mend=error.hint)
        return Finding(what=subject, state="unknown", detail=error.what, mend=_DEPLOY_SHOWS)
    return Finding(what=subject, state="unknown", detail="EC2 gave an unexpected answer to the dry run", mend=_DEPLOY_SHOWS)


TERRAFORM = Check("Terraform", _find_terraform)
IDENTITY = Check("credentials", _find_identity, "credentials")
_QUOTA_ROLE = Check("quota role", partial(_find_role, "AWSServiceRoleForServiceQuotas", "request for a quota", QUOTA_ROLE))
CHECKS = (
    Check("account plan", _find_plan),
    Check("region", _find_region),
    Check("zones", _find_zones),
    Check("quota", find_quotas),
    Check("quota of the other market", _find_other_quotas),
    Check(
        "spot role",
        partial(_find_role, "AWSServiceRoleForEC2Spot", "spot instance", SPOT_ROLE),
        applies=lambda facts: facts.market == "spot",
    ),
    Check(
        "storage role",
        partial(_find_role, "AWSServiceRoleForAmazonElasticFileSystem", "mount target", STORAGE_ROLE),
        applies=lambda facts: any(lab.storage_gib for lab in facts.labs),
    ),
    Check("image", _find_images),
    Check("VPC limit", _find_network_room),
    Check("leftovers", _find_leftovers),
    Check("permission to start", _find_permission),
    Check("billing access", find_bill_readers, applies=lambda facts: facts.whole),
    Check(schedule.WHAT, lambda facts: [schedule.readiness(facts.account)], "backstop"),
)
HERE = (Check("SSH key", _find_key), Check("your address", _find_address), Check("price", _find_price, "price"))


ImageKind = Literal["pytorch", "ubuntu"]
_DEEP_LEARNING = "/aws/service/deeplearning/ami/x86_64/oss-nvidia-driver-gpu-pytorch"
_UBUNTU = "/aws/service/canonical/ubuntu/server"
CANDIDATES: dict[ImageKind, tuple[str, ...]] = {
    "pytorch": (
        f"{_DEEP_LEARNING}-2.12-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.11-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.10-ubuntu-24.04/latest/ami-id",
        f"{_DEEP_LEARNING}-2.13-ubuntu-26.04/latest/ami-id",
    ),
    "ubuntu": (
        f"{_UBUNTU}/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
        f"{_UBUNTU}/26.04/stable/current/amd64/hvm/ebs-gp3/ami-id",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Image:
    """A machine image in this region.

    `parameter`: the AWS parameter that contains its id.
    `root_gib`: the smallest root disk that it fits on, in GiB.
    """

    id: str
    parameter: str
    root_gib: int


def resolve(account: Account, kind: ImageKind) -> Image:
    """Return the best image of that kind that is available in this region today. Raises MissingError if there is none."""
    names = CANDIDATES[kind]
    answer = account.call("ssm", "get_parameters", Names=list(names))
    image_ids = {parameter["Name"]: parameter["Value"] for parameter in answer["Parameters"]}
    name = next((name for name in names if name in image_ids), None)
    if name is None:
        raise MissingError(
            f"{account.region} has none of the images that the course uses ({kind})",
            hint="choose another --region, or upgrade: pip install --upgrade gpucourse",
        )
    images = account.call("ec2", "describe_images", ImageIds=[image_ids[name]])["Images"]
    if not images:
        raise MissingError(f"{image_ids[name]} ({name}) does not exist in {account.region}", hint="choose another --region")
    root = images[0].get("RootDeviceName")
    sizes = [
        int(device["Ebs"]["VolumeSize"])
        for device in images[0].get("BlockDeviceMappings") or ()
        if device.get("DeviceName") == root and "VolumeSize" in device.get("Ebs", {})
    ]
    return Image(id=image_ids[name], parameter=name, root_gib=max(sizes, default=0))
