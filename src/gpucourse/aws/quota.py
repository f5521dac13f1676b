"""The vCPU quotas of a region: for each quota, the vCPUs that the course needs, the limit, and the vCPUs in use.

A quota counts vCPUs, not instances or GPUs. On-demand and spot have separate quotas. A limit that AWS does not let us read is
unknown, never enough. Only the module that needs the most vCPUs counts, because a learner does one module at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from gpucourse.aws.offerings import instance_type, instance_types
from gpucourse.aws.session import Account
from gpucourse.errors import CloudError, GpucourseError
from gpucourse.hardware import hardware
from gpucourse.model.cloud import LabNeed, Market, Quota, QuotaRequest

T = TypeVar("T")

SERVICE = "ec2"
VPCS = "L-F678F1CE"  # the VPCs of a region, a quota of the service vpc
_OPEN = {"PENDING", "CASE_OPENED"}


def needs(labs: Iterable[LabNeed], market: Market) -> dict[tuple[str, Market], dict[str, int]]:
    """Return how many vCPUs each module needs from each quota, by (quota code, market)."""
    by_quota: dict[tuple[str, Market], dict[str, int]] = {}
    for lab in labs:
        for machines in lab.machines:
            kind, bought = instance_type(machines.instance_type), machines.market(market)
            types = by_quota.setdefault((kind.quota[bought], bought), {})
            types[lab.module] = types.get(lab.module, 0) + kind.vcpus * machines.count
    return by_quota


@dataclass
class Quotas:
    """The vCPU quotas of an account in one region. Each limit, and the use, is queried only once; threads may share this
    object.

    `limits` and `used` contain the answers so far. If AWS did not answer, they contain the reason.
    """

    account: Account
    limits: dict[str, tuple[int | None, str]] = field(default_factory=dict)
    used: tuple[dict[str, int] | None, str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def assess(self, labs: Sequence[LabNeed], market: Market = "on-demand") -> list[Quota]:
        """Return every quota that these labs need, with its limit and use. The labs are assumed to run one at a time."""
        names = {code: name for family in hardware().quotas.values() for code, name in family.by_market.values()}
        quotas: list[Quota] = []
        with self._lock:
            self.used = self.used or _try(partial(count_used_vcpus, self.account))
            running, trouble = self.used
            for (code, bought), types in sorted(needs(labs, market).items()):
                if code not in self.limits:
                    self.limits[code] = _try(partial(limit, self.account, code))
                quota_limit, refusal = self.limits[code]
                quotas.append(
                    Quota(
                        code=code,
                        name=names[code],
                        market=bought,
                        region=self.account.region,
                        needed=max(types.values()),
                        limit=quota_limit,
                        used=None if running is None else running.get(code, 0),
                        modules=tuple(types),
                        reason=refusal or trouble,
                    )
                )
        return quotas


def limit(account: Account, code: str, service: str = SERVICE) -> int:
    """Return the account's limit for that quota in this region (for EC2, in vCPUs).

    If the account has no value of its own, return AWS's default.
    """
    request = {"ServiceCode": service, "QuotaCode": code}
    answer = account.call_if_exists("service-quotas", "get_service_quota", **request)
    if answer is None:
        answer = account.call("service-quotas", "get_aws_default_service_quota", **request)
    return int(answer["Quota"]["Value"])


def count_used_vcpus(account: Account) -> dict[str, int]:
    """Return how many vCPUs all instances of the account use in this region, by quota code.

    Instances that do not belong to the course count, too.
    """
    vcpus: dict[str, int] = {}
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    for reservation in account.pages("ec2", "describe_instances", "Reservations", Filters=states):
        for instance in reservation["Instances"]:
            code = _find_code(instance["InstanceType"], spot=instance.get("InstanceLifecycle") == "spot")
            if code is not None:
                vcpus[code] = vcpus.get(code, 0) + _count_vcpus(instance)
    return vcpus


def count_networks(account: Account) -> int:
    """Return how many VPCs the region has. Raises the errors of `Account.call`."""
    return sum(1 for _vpc in account.pages("ec2", "describe_vpcs", "Vpcs"))


def request_increase(account: Account, quota: Quota) -> QuotaRequest:
    """Ask AWS to raise this quota to what the course needs in addition to the running instances.

    If a request is already open, return that request. AWS staff decide, within hours to days, and may grant less. Raises
    PermissionRefused, CloudError.
    """
    try:
        answer = account.call(
            "service-quotas",
            "request_service_quota_increase",
            ServiceCode=SERVICE,
            QuotaCode=quota.code,
            DesiredValue=float(quota.needed + (quota.used or 0)),
        )
    except CloudError as error:
        if error.cloud_code != "ResourceAlreadyExistsException":
            raise
        request = open_request(account, quota.code)
        if request is None:
            raise
        return request
    return _parse_request(answer["RequestedQuota"], account.region)


def open_request(account: Account, code: str) -> QuotaRequest | None:
    """Return the request for this quota that AWS has not decided yet, or None."""
    for request in account.pages(
        "service-quotas",
        "list_requested_service_quota_change_history_by_quota",
        "RequestedQuotas",
        ServiceCode=SERVICE,
        QuotaCode=code,
    ):
        if request.get("Status") in _OPEN:
            return _parse_request(request, account.region, opened_before=True)
    return None


def console_page(quota: Quota) -> str:
    """Return the address of the AWS console page that shows this quota and can raise it."""
    return f"https://{quota.region}.console.aws.amazon.com/servicequotas/home/services/{SERVICE}/quotas/{quota.code}"


def _parse_request(answer: dict[str, Any], region: str, *, opened_before: bool = False) -> QuotaRequest:
    return QuotaRequest(
        code=answer["QuotaCode"],
        region=region,
        wanted=int(answer["DesiredValue"]),
        status=answer["Status"],
        id=answer.get("Id", ""),
        case=answer.get("CaseId", ""),
        opened_before=opened_before,
    )


def _find_code(name: str, *, spot: bool) -> str | None:
    """Return the quota against which an instance of this type counts. Types that are not in our table are found by their
    family."""
    quota = hardware().quota_of(name)
    return quota.by_market["spot" if spot else "on-demand"][0] if quota else None


def _count_vcpus(instance: dict[str, Any]) -> int:
    cpu = instance.get("CpuOptions")
    if not cpu:  # not every answer contains it
        row = instance_types().get(instance["InstanceType"])
        return row.vcpus if row else 0
    return int(cpu["CoreCount"]) * int(cpu["ThreadsPerCore"])


def _try(ask: Callable[[], T]) -> tuple[T | None, str]:
    try:
        return ask(), ""
    except GpucourseError as error:
        return None, error.what
