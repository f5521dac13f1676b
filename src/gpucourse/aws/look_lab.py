"""Checks of what the labs need from the account: zones, quotas, images, room, no leftovers of earlier labs, the permission."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from gpucourse.aws import offerings, quota, resource_scan, tags
from gpucourse.aws.images import ImageKind, resolve
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, GpucourseError, MissingError, PermissionRefused
from gpucourse.model.cloud import CloudResource, Finding, LabNeed, Market, Offers, Quota

_LEAKS = "see what it is: gpucourse leaks; remove it: gpucourse leaks --clean"
_FREE = "meanwhile, free of charge: --target here on a notebook with a GPU, or --target hosts on machines that you have"


def zones(account: Account, labs: Sequence[LabNeed]) -> list[Finding]:
    """Check that for each lab, one zone offers all of its types, since its nodes must be in one zone (check 5)."""
    zone_offers = offerings.offers(account, (machines.instance_type for lab in labs for machines in lab.machines))
    return [_zones_of(zone_offers, lab) for lab in labs]


def _zones_of(zone_offers: Offers, lab: LabNeed) -> Finding:
    what = f"zones for module {lab.module}"
    types = frozenset(machines.instance_type for machines in lab.machines)
    common = zone_offers.find_common_zones(types)
    named = " with ".join(sorted(types))
    if common:
        return Finding(what=what, state="ok", detail=f"{named} in {', '.join(common)}")
    nowhere = sorted(kind for kind in types if not zone_offers.find_common_zones(frozenset({kind})))
    detail = f"no zone of {zone_offers.region} offers {', '.join(nowhere)}" if nowhere else f"no zone offers {named} together"
    others = [region for region in offerings.REGIONS if region != zone_offers.region]
    return Finding(what=what, state="missing", detail=detail, mend=f"another --gpu, or another --region: {', '.join(others)}")


def quotas(account: Account, labs: Sequence[LabNeed], market: Market, request: str) -> list[Finding]:
    """Check that every quota allows what the largest lab needs of it, in addition to what already runs (check 6). `request`:
    the command that requests more."""
    return [_quota(account, labs, market, vcpu_quota, request) for vcpu_quota in quota.assess(account, labs, market)]


def other_market(account: Account, labs: Sequence[LabNeed], market: Market, request: str) -> list[Finding]:
    """Check the quotas of the market that was not chosen (check 6), since raising one takes days. One that is too small is only
    a warning."""
    other: Market = "on-demand" if market == "spot" else "spot"
    chosen = quota.needs(labs, market)
    other_quotas = [item for item in quota.assess(account, labs, other) if (item.code, item.market) not in chosen]
    told = (_quota(account, labs, other, item, request) for item in other_quotas)
    only = f"counts only {'with' if other == 'spot' else 'without'} --spot"
    return [
        replace(item, state="warning", detail=f"{item.detail}; {only}") if item.state == "missing" else item for item in told
    ]


def _quota(account: Account, labs: Sequence[LabNeed], market: Market, vcpu_quota: Quota, request: str) -> Finding:
    what = f"quota {vcpu_quota.code} ({vcpu_quota.market})"
    has = "unknown" if vcpu_quota.limit is None else str(vcpu_quota.limit)
    used = "unknown" if vcpu_quota.used is None else str(vcpu_quota.used)
    detail = f"{vcpu_quota.name} in {vcpu_quota.region}: needed {vcpu_quota.needed} vCPU, limit {has}, in use {used}"
    if vcpu_quota.enough:
        return Finding(what=what, state="ok", detail=detail)
    page = quota.console_page(vcpu_quota)
    if vcpu_quota.enough is None:
        return Finding(what=what, state="unknown", detail=f"{detail}; {vcpu_quota.reason}", mend=f"look there: {page}")
    taken = quota.needs(labs, market)[vcpu_quota.code, vcpu_quota.market]
    free = vcpu_quota.limit if vcpu_quota.free is None else vcpu_quota.free
    fit = [module for module, vcpus in taken.items() if vcpus <= (free or 0)]
    if len(taken) > 1:
        detail += f"; enough for module{'s' if len(fit) != 1 else ''} {', '.join(fit)}" if fit else "; enough for no module"
    waiting = _describe_open_request(account, vcpu_quota)
    if waiting:
        return Finding(
            what=what, state="missing", detail=f"{detail}; {waiting}", mend=f"wait for AWS's answer: {page}; {_FREE}"
        )
    ask = f"{request}{' --spot' if market == 'spot' else ''}"
    mend = f"{ask} (people decide, hours to days, maybe a part of it), or {page}"
    offered = _offer_smaller(labs, vcpu_quota, free or 0)
    return Finding(what=what, state="missing", detail=detail, mend="; ".join([*offered, mend, _FREE]))


def _offer_smaller(labs: Sequence[LabNeed], vcpu_quota: Quota, free: int) -> list[str]:
    """Return the commands that build these labs with smaller nodes, if the quota allows those but not the usual ones."""
    key, offered = (vcpu_quota.code, vcpu_quota.market), list[str]()
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
        offered.append(f"{shlex.join(words)} fits: {workers.count} x {lab.smaller}, {vcpus} vCPU")
    return offered


def _describe_open_request(account: Account, vcpu_quota: Quota) -> str:
    try:
        asked = quota.open_request(account, vcpu_quota.code)
    except GpucourseError:
        return ""
    return f"a request for {asked.wanted} is open ({asked.status})" if asked else ""


def images(account: Account, labs: Sequence[LabNeed]) -> list[Finding]:
    """Check that the machine images of the labs exist in this region, and fit on the disks (check 8)."""
    findings: list[Finding] = []
    for kind in _kinds_of(labs):
        image = resolve(account, kind)
        detail = f"{image.id} ({image.parameter.removeprefix('/aws/service/')}), root disk of {image.root_gib} GiB at least"
        findings.append(Finding(what=f"image ({kind})", state="ok", detail=detail))
    return findings


def _kinds_of(labs: Sequence[LabNeed]) -> list[ImageKind]:
    kinds = {_kind_of(machines.instance_type) for lab in labs for machines in lab.machines}
    return sorted(kinds)


def _kind_of(instance_type: str) -> ImageKind:
    return "pytorch" if offerings.instance_type(instance_type).gpus else "ubuntu"


def networks(account: Account) -> list[Finding]:
    """Check that the region has room for one more VPC; each lab has its own (check 9)."""
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
    """Check that no resource with the course's tags exists that this workspace does not know (check 9)."""
    what = "leftovers"
    moment = now or datetime.now(UTC)
    resources = resource_scan.find(account, regions=dict.fromkeys([account.region, *regions]), strict=True)
    unseen = [resource for resource in resources if not resource.seen]
    ours = [resource for resource in resources if resource.seen and resource.tags.get("Stack") not in standing]
    findings: list[Finding] = []
    if ours:
        stacks = sorted({resource.tags.get("Stack", "unknown") for resource in ours})
        late = sum(1 for resource in ours if _is_expired(resource, moment))
        detail = f"{len(ours)} things of {len(stacks)} lab(s) that this workspace does not know ({', '.join(stacks)})"
        detail += f"; {late} past their deadline" if late else ""
        findings.append(Finding(what=what, state="warning", detail=detail, mend=_LEAKS))
    if unseen:
        kinds = ", ".join(sorted({resource.kind for resource in unseen}))
        mend = "give this identity the course's policy: gpucourse doctor --policy prints it"
        findings.append(Finding(what=what, state="unknown", detail=f"not allowed to look for: {kinds}", mend=mend))
    return findings or [Finding(what=what, state="ok", detail="none in the regions that this workspace uses")]


def _is_expired(resource: CloudResource, now: datetime) -> bool:
    try:
        return datetime.fromisoformat(resource.tags["Expires"]) < now
    except (KeyError, ValueError, TypeError):
        return False


def permission(account: Account, labs: Sequence[LabNeed], market: Market) -> list[Finding]:
    """Check that this identity may start each type, by EC2's dry run, which tests permissions but neither quota nor capacity
    (check 11)."""
    machines = {machines.instance_type: machines for lab in labs for machines in lab.machines}
    try:
        ids = {kind: resolve(account, kind).id for kind in _kinds_of(labs)}
    except MissingError as error:  # the check of the images says what helps
        return [Finding(what="permission to start", state="unknown", detail=error.what, mend=error.hint)]
    return [
        _may_start(account, name, ids[_kind_of(name)], machines.market(market)) for name, machines in sorted(machines.items())
    ]


def _may_start(account: Account, name: str, image: str, market: Market) -> Finding:
    what = f"permission to start {name}"
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
        mend = "give this identity the course's policy: gpucourse doctor --policy prints it"
        return Finding(what=what, state="missing", detail=f"refused: {error.action}", mend=mend)
    except CloudError as error:
        if error.cloud_code == "DryRunOperation":
            return Finding(what=what, state="ok", detail="a dry run says yes")
        if error.kind in {"account", "credentials"}:
            return Finding(what=what, state="missing", detail=error.what, mend=error.hint)
        return Finding(what=what, state="unknown", detail=error.what, mend="the first deploy will show it")
    return Finding(
        what=what, state="unknown", detail="EC2 did not answer the dry run as it should", mend="the first deploy will show it"
    )
