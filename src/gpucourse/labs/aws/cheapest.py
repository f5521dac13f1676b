"""`deploy --gpu any`: choose the GPU whose nodes are cheapest today, and the market too unless the user chose it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from gpucourse.aws import offerings, quota
from gpucourse.aws.money import PriceBook, refresh_prices
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import MissingError, UsageError
from gpucourse.hardware import hardware
from gpucourse.labs.aws.choice import list_labs, need_of, validate_node_count, validate_size
from gpucourse.labs.aws.ledger import read_prices
from gpucourse.model.cloud import LabNeed, Market
from gpucourse.model.manifest import Module

if TYPE_CHECKING:
    from gpucourse.labs.request import DeployRequest

ANY = "any"
_LISTED = 4


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A GPU in one market, with the price of one of its nodes."""

    gpu: str
    market: Market
    instance_type: str
    usd_per_hour: Decimal

    def __str__(self) -> str:
        market = "on spot" if self.market == "spot" else "on demand"
        return f"{self.gpu.upper()} ({self.instance_type}) {market} ${self.usd_per_hour:.3f}"


def replace_any_gpu(
    context: Context, request: DeployRequest, account: Account | None = None
) -> tuple[DeployRequest, list[str]]:
    """Return the request with `any` replaced by a GPU and a market, and a note that compares the prices.

    A request for specific GPUs is returned unchanged, without a note. An existing lab keeps its GPU.

    Raises UsageError for `any` together with other GPUs, MissingError if no GPU can be started, CloudError.
    """
    gpus = [gpu.lower() for gpu in request.gpu]
    if ANY not in gpus:
        return request, []
    if len(gpus) > 1:
        command = f"gpucourse deploy {request.module} --target aws --gpu any"
        raise UsageError("--gpu any cannot be combined with other GPUs: it means the cheapest one today", hint=command)
    module = context.catalog.module(request.module)
    if existing := list_labs(context.paths, module.id):
        gpu = existing[0].cloud.gpu
        return replace(request, gpu=(gpu,)), [f"--gpu any: the lab {existing[0].stack} keeps its GPU, {gpu.upper()}"]
    region = offerings.validate_region(request.region or context.settings.region)
    account = account or Account(region, context.environ)
    markets: list[Market] = ["on-demand", "spot"] if request.spot is None else ["spot" if request.spot else "on-demand"]
    needs = _list_needs(module, request)
    available = _find_offered(account, needs)
    needs = {gpu: need for gpu, need in needs.items() if gpu in available}
    quotas = quota.Quotas(account)
    book = refresh_prices(read_prices(context.paths, region), account, map(_type_of, needs.values()), datetime.now(UTC))
    candidates = sorted(
        (candidate for market in markets for candidate in _list_candidates(quotas, needs, market, book)),
        key=lambda candidate: (candidate.usd_per_hour, candidate.market == "spot"),
    )
    if not candidates:
        raise MissingError(
            f"no GPU of the course can be started for module {module.id} in {region}: none is offered there within your quota",
            hint=f"gpucourse doctor --target aws --module {module.id}; without an account: --target here or --target hosts",
        )
    choice_found, *alternatives = candidates
    alternatives_text = f"; then {', '.join(map(str, alternatives[:_LISTED]))}" if alternatives else ""
    note = f"--gpu any: the cheapest node today is {choice_found} an hour{alternatives_text}"
    return replace(request, gpu=(choice_found.gpu,), spot=choice_found.market == "spot", region=region), [note]


def _list_needs(module: Module, request: DeployRequest) -> dict[str, LabNeed]:
    nodes = None if request.nodes is None else validate_node_count(module, request.nodes)
    size = None if request.size is None else validate_size(module, request.size)
    return {gpu: need_of(module, gpu=gpu, nodes=nodes, size=size) for gpu in hardware().choices}


def _type_of(need: LabNeed) -> str:
    return need.machines[-1].instance_type


def _find_offered(account: Account, needs: dict[str, LabNeed]) -> set[str]:
    """Return the GPUs for which some zone offers every instance type that the lab needs."""
    types = {gpu: [machines.instance_type for machines in need.machines] for gpu, need in needs.items()}
    zone_offers = offerings.offers(account, (name for names in types.values() for name in names))
    return {
        gpu
        for gpu, names in types.items()
        if offerings.first_attempt(zone_offers, names[-1], with_types=names[:-1]) is not None
    }


def _list_candidates(quotas: quota.Quotas, needs: dict[str, LabNeed], market: Market, book: PriceBook) -> list[_Candidate]:
    """Return the GPUs that fit the quota of that market, or whose quota is unknown."""
    assessed = {item.code: item for item in quotas.assess(list(needs.values()), market)}
    return [
        _Candidate(
            gpu=gpu,
            market=market,
            instance_type=_type_of(need),
            usd_per_hour=book.instance(_type_of(need), market).usd_per_hour,
        )
        for gpu, need in needs.items()
        if all(
            replace(assessed[code], needed=sum(demand.values())).enough is not False
            for (code, _market), demand in quota.needs([need], market).items()
        )
    ]
