"""Looks at what the labs need of the account: zones, quotas, images, room, nothing left of earlier labs, the permission."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gpucourse.aws import offerings, quota, sweep, tags
from gpucourse.aws.images import ImageKind, resolve
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, GpucourseError, MissingError, PermissionRefused
from gpucourse.model.cloud import Finding, Found, LabNeed, Market, Offers, Quota

_LEAKS = "see what it is: gpucourse leaks; remove it: gpucourse leaks --clean"


def zones(account: Account, labs: Sequence[LabNeed]) -> list[Finding]:
    """5: for each lab there is a zone that offers all of its types, since its nodes must stand in one zone."""
    found = offerings.offers(account, (machines.instance_type for lab in labs for machines in lab.machines))
    return [_zones_of(found, lab) for lab in labs]


def _zones_of(found: Offers, lab: LabNeed) -> Finding:
    what = f"zones for module {lab.module}"
    types = frozenset(machines.instance_type for machines in lab.machines)
    common = found.common(types)
    named = " with ".join(sorted(types))
    if common:
        return Finding(what=what, state="ok", detail=f"{named} in {', '.join(common)}")
    nowhere = sorted(kind for kind in types if not found.common(frozenset({kind})))
    detail = f"no zone of {found.region} offers {', '.join(nowhere)}" if nowhere else f"no zone offers {named} together"
    others = [region for region in offerings.REGIONS if region != found.region]
    return Finding(what=what, state="missing", detail=detail, mend=f"another --gpu, or another --region: {', '.join(others)}")


def quotas(account: Account, labs: Sequence[LabNeed], market: Market, request: str) -> list[Finding]:
    """6: every quota allows what the largest lab needs of it besides what runs already. `request`: what to type for more."""
    return [_quota(account, labs, market, found, request) for found in quota.assess(account, labs, market)]


def other_market(account: Account, labs: Sequence[LabNeed], market: Market, request: str) -> list[Finding]:
    """6: the quotas of the market that was not chosen, since raising one takes days. What is too small is only a warning."""
    other: Market = "on-demand" if market == "spot" else "spot"
    chosen = quota.needs(labs, market)
    found = [one for one in quota.assess(account, labs, other) if (one.code, one.market) not in chosen]
    told = (_quota(account, labs, other, one, request) for one in found)
    only = f"counts only {'with' if other == 'spot' else 'without'} --spot"
    return [replace(one, state="warning", detail=f"{one.detail}; {only}") if one.state == "missing" else one for one in told]


def _quota(account: Account, labs: Sequence[LabNeed], market: Market, found: Quota, request: str) -> Finding:
    what = f"quota {found.code} ({found.market})"
    has = "unknown" if found.limit is None else str(found.limit)
    used = "unknown" if found.used is None else str(found.used)
    detail = f"{found.name} in {found.region}: needed {found.needed} vCPU, limit {has}, in use {used}"
    if found.enough:
        return Finding(what=what, state="ok", detail=detail)
    page = quota.console_page(found)
    if found.enough is None:
        return Finding(what=what, state="unknown", detail=f"{detail}; {found.reason}", mend=f"look there: {page}")
    taken = quota.needs(labs, market)[found.code, found.market]
    free = found.limit if found.free is None else found.free
    fit = [module for module, vcpus in taken.items() if vcpus <= (free or 0)]
    if len(taken) > 1:
        detail += f"; enough for module{'s' if len(fit) != 1 else ''} {', '.join(fit)}" if fit else "; enough for no module"
    waiting = _waiting(account, found)
    if waiting:
        return Finding(what=what, state="missing", detail=f"{detail}; {waiting}", mend=f"wait for AWS's answer: {page}")
    ask = f"{request}{' --spot' if market == 'spot' else ''}"
    mend = f"{ask} (people decide, hours to days, maybe a part of it), or {page}"
    return Finding(what=what, state="missing", detail=detail, mend=mend)


def _waiting(account: Account, found: Quota) -> str:
    try:
        asked = quota.open_request(account, found.code)
    except GpucourseError:
        return ""
    return f"a request for {asked.wanted} is open ({asked.status})" if asked else ""


def images(account: Account, labs: Sequence[LabNeed]) -> list[Finding]:
    """8: the machine images that the labs start from exist in this region, and fit on the disks."""
    found: list[Finding] = []
    for kind in _kinds_of(labs):
        image = resolve(account, kind)
        detail = f"{image.id} ({image.parameter.removeprefix('/aws/service/')}), root disk of {image.root_gib} GiB at least"
        found.append(Finding(what=f"image ({kind})", state="ok", detail=detail))
    return found


def _kinds_of(labs: Sequence[LabNeed]) -> list[ImageKind]:
    kinds = {_kind_of(machines.instance_type) for lab in labs for machines in lab.machines}
    return sorted(kinds)


def _kind_of(instance_type: str) -> ImageKind:
    return "pytorch" if offerings.instance_type(instance_type).gpus else "ubuntu"


def networks(account: Account) -> list[Finding]:
    """9: the region has room for one more VPC; each lab has its own."""
    what = "room for a network"
    held = sum(1 for _vpc in account.pages("ec2", "describe_vpcs", "Vpcs"))
    try:
        allowed = quota.limit(account, quota.VPCS, "vpc")
    except (CloudError, PermissionRefused) as error:
        detail = f"{held} VPCs in {account.region}; how many it may have is not known: {error.what}"
        return [Finding(what=what, state="unknown", detail=detail, mend="a new account may have 5 in a region")]
    detail = f"{held} of {allowed} VPCs in {account.region}"
    if held >= allowed:
        mend = f"remove one that nobody needs. {_LEAKS}"
        return [Finding(what=what, state="missing", detail=detail, mend=mend)]
    return [Finding(what=what, state="ok", detail=detail)]


def leftovers(account: Account, standing: frozenset[str], regions: Iterable[str], now: datetime | None = None) -> list[Finding]:
    """9: nothing with the course's tags stands that this workspace does not know of."""
    what = "leftovers"
    moment = now or datetime.now(UTC)
    found = sweep.find(account, regions=dict.fromkeys([account.region, *regions]), strict=True)
    unseen = [one for one in found if not one.seen]
    ours = [one for one in found if one.seen and one.tags.get("Stack") not in standing]
    findings: list[Finding] = []
    if ours:
        stacks = sorted({one.tags.get("Stack", "unknown") for one in ours})
        late = sum(1 for one in ours if _expired(one, moment))
        detail = f"{len(ours)} things of {len(stacks)} lab(s) that this workspace does not know ({', '.join(stacks)})"
        detail += f"; {late} past their end of life" if late else ""
        findings.append(Finding(what=what, state="warning", detail=detail, mend=_LEAKS))
    if unseen:
        kinds = ", ".join(sorted({one.kind for one in unseen}))
        mend = "give this identity the course's policy: gpucourse doctor --policy prints it"
        findings.append(Finding(what=what, state="unknown", detail=f"not allowed to look for: {kinds}", mend=mend))
    return findings or [Finding(what=what, state="ok", detail="none in the regions that this workspace uses")]


def _expired(one: Found, now: datetime) -> bool:
    try:
        return datetime.fromisoformat(one.tags["Expires"]) < now
    except (KeyError, ValueError, TypeError):
        return False


def permission(account: Account, labs: Sequence[LabNeed], market: Market) -> list[Finding]:
    """11: this identity may start each type, asked with EC2's dry run, which sees permissions but neither quota nor room."""
    machines = {one.instance_type: one for lab in labs for one in lab.machines}
    try:
        ids = {kind: resolve(account, kind).id for kind in _kinds_of(labs)}
    except MissingError as error:  # the look at the images says what helps
        return [Finding(what="permission to start", state="unknown", detail=error.what, mend=error.hint)]
    return [_may_start(account, name, ids[_kind_of(name)], one.market(market)) for name, one in sorted(machines.items())]


def _may_start(account: Account, name: str, image: str, market: Market) -> Finding:
    what = f"permission to start {name}"
    request: dict[str, Any] = {
        "ImageId": image,
        "InstanceType": name,
        "MinCount": 1,
        "MaxCount": 1,
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags.listed(tags.ours())}],
    }
    if market == "spot":
        request["InstanceMarketOptions"] = {"MarketType": "spot"}
    try:
        account.call("ec2", "run_instances", DryRun=True, **request)
    except PermissionRefused as error:
        mend = "give this identity the course's policy: gpucourse doctor --policy prints it"
        return Finding(what=what, state="missing", detail=f"refused: {error.action}", mend=mend)
    except CloudError as error:
        if error.cloud_code == "DryRunOperation":
            return Finding(what=what, state="ok", detail="a dry run says yes")
        if error.kind in {"account", "credentials"}:
            return Finding(what=what, state="missing", detail=error.what, mend=error.hint)
        return Finding(what=what, state="unknown", detail=error.what, mend="the first deploy tells")
    return Finding(
        what=what, state="unknown", detail="EC2 did not answer the dry run as it should", mend="the first deploy tells"
    )
