"""`doctor --target aws`: find what this account lacks for the course, show the course's price, and request quotas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpucourse.aws import quota
from gpucourse.aws.money import PriceBook, estimate, refresh_prices, usd_per_hour
from gpucourse.aws.offerings import instance_type, read_partition, validate_region
from gpucourse.aws.policy import policy_text, setup_text
from gpucourse.aws.preflight import preflight
from gpucourse.aws.quota import Quotas
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError, UsageError
from gpucourse.labs.aws.choice import list_labs, need_of, needs, usual_gpu, validate_node_count
from gpucourse.labs.aws.plan import make_environment, measure_growth, request_command
from gpucourse.labs.doctor import check_course
from gpucourse.labs.request import PreflightRequest
from gpucourse.labs.results import ModulePrice, PreflightReport, ShortQuota
from gpucourse.model.cloud import LabNeed, Market, QuotaRequest
from gpucourse.model.event import stage
from gpucourse.workspace.paths import WorkspacePaths

if TYPE_CHECKING:
    from gpucourse.workspace.settings import Settings


def doctor(context: Context, look: PreflightRequest) -> PreflightReport:
    """Check everything that the labs need from the account, and change nothing.

    Raises UnknownName or UsageError for a module that has no lab on AWS; never raises for an error that AWS returns.
    """
    account, market, labs = _account(context, look), _market(context.settings, look), _labs(context, look)
    with stage(context.watch, "preflight", f"asking AWS about {account.region}"):
        book = _book(account, labs)
        ssh_cidr = look.ssh_cidr or context.settings.ssh_cidr
        request = replace(
            make_environment(context, Quotas(account), labs, book, market, ssh_cidr),
            whole=True,
            growth=lambda labs: _measure_growth(context.paths, account, labs, market),
            request=request_command(look),
        )
        findings = [*preflight(request), *([check_course(context)] if context.catalog.errors else [])]
    estimates = [(lab, estimate(book, lab, market=market)) for lab in labs]
    return PreflightReport(
        region=account.region,
        market=market,
        findings=findings,
        prices=[
            ModulePrice(
                module=lab.module,
                title=lab.title,
                machines=_machines(lab),
                usd_per_hour=usd_per_hour(estimate),
                hours=lab.hours,
            )
            for lab, estimate in estimates
        ],
        sources=list(dict.fromkeys(charge.rate.origin for _lab, estimate in estimates for charge in estimate)),
    )


def short_quotas(context: Context, look: PreflightRequest) -> list[ShortQuota]:
    """Return the quotas that are unknown or too small for the largest of these labs, with any request that is already open."""
    account = _account(context, look)
    with stage(context.watch, "quotas", f"asking AWS about quotas in {account.region}"):
        account.identity()  # without credentials, raise one error instead of reporting each quota as `unknown`
        market = _market(context.settings, look)
        vcpu_quotas = Quotas(account).assess(_measure_growth(context.paths, account, _labs(context, look), market), market)
        return [
            ShortQuota(
                quota=vcpu_quota, open=quota.open_request(account, vcpu_quota.code) if vcpu_quota.enough is False else None
            )
            for vcpu_quota in vcpu_quotas
            if not vcpu_quota.enough
        ]


def request_quotas(context: Context, look: PreflightRequest, shortages: Sequence[ShortQuota]) -> list[QuotaRequest]:
    """Request an increase of each quota from AWS, unless a request for it is already open; return the requests.

    Raises the errors of `Account.call`.
    """
    account = _account(context, look)
    return [quota.request_increase(account, short.quota) for short in shortages if short.can_be_requested]


def policy(region: str) -> str:
    """Return an IAM policy, as JSON, with the ARNs of the region's partition. Raises UsageError for an invalid region."""
    return policy_text(read_partition(region))


def setup(region: str) -> str:
    """Return a CloudFormation template, as JSON, with the ARNs of the region's partition. Raises the errors of `policy`."""
    return setup_text(read_partition(region))


def _account(context: Context, look: PreflightRequest) -> Account:
    return Account(validate_region(look.region or context.settings.region), context.environ)


def _market(settings: Settings, look: PreflightRequest) -> Market:
    spot = settings.spot if look.spot is None else look.spot
    return "spot" if spot else "on-demand"


def _measure_growth(paths: WorkspacePaths, account: Account, labs: Sequence[LabNeed], market: Market) -> list[LabNeed]:
    """Return what these labs still need from the quota, counted in the same way as by `deploy`.

    For an existing lab, only the instances that are not running yet are counted.
    """
    growths: list[LabNeed] = []
    for need in labs:
        gpu = instance_type(need.machines[-1].instance_type).gpu.lower()
        region_labs = [
            lab for lab in list_labs(paths, need.module) if (lab.cloud.region, lab.cloud.market) == (account.region, market)
        ]
        existing = next((lab for lab in region_labs if lab.cloud.gpu == gpu), None)
        try:
            growths.append(need if existing is None else measure_growth(account, need, existing))
        except GpucourseError:  # the use of the quota is then unknown too, which is reported
            growths.append(need)
    return growths


def _labs(context: Context, look: PreflightRequest) -> list[LabNeed]:
    gpus = look.gpu or (context.settings.gpu,)
    if look.module is not None:
        module = context.catalog.module(look.module)
        gpus = look.gpu or (usual_gpu(context, module),)
        nodes = None if look.nodes is None else validate_node_count(module, look.nodes)
        return [need_of(module, gpu=gpu, nodes=nodes) for gpu in gpus]
    if look.nodes is not None:
        raise UsageError("--nodes needs --module", hint=f"gpucourse doctor --target aws --module 3 --nodes {look.nodes}")
    labs = [lab for gpu in gpus for lab in needs(context.catalog, gpu=gpu)]
    if not labs:
        raise MissingError(f"no module in {context.folders.modules} has a lab on AWS", hint="gpucourse list")
    return labs


def _book(account: Account, labs: Sequence[LabNeed]) -> PriceBook:
    """Return today's prices if AWS accepts the credentials, otherwise the prices that ship with the package."""
    book = PriceBook(region=account.region)
    try:
        account.identity()
    except GpucourseError:  # the check of the credentials reports it
        return book
    types = {machines.instance_type for lab in labs for machines in lab.machines}
    return refresh_prices(book, account, types, datetime.now(UTC))


def _machines(lab: LabNeed) -> str:
    return " + ".join(f"{machines.count} x {machines.instance_type}" for machines in lab.machines)
