"""Proposing a lab on AWS: examines, plans and prices everything, and builds nothing.

with propose(context, request) as proposal:   what would be built, and for how much
    ...                                       show it, ask
    build(context, proposal)                  exactly that (labs.aws.build)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpucourse.aws import offerings
from gpucourse.aws.caller import caller_cidr, validate_cidr
from gpucourse.aws.money import PriceBook, refresh_prices, usd_over
from gpucourse.aws.preflight import describe_quota, list_blocking, preflight
from gpucourse.aws.quota import Quotas
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import MissingError
from gpucourse.labs.aws import new_deployment, quota_fit
from gpucourse.labs.aws.account import check_identity
from gpucourse.labs.aws.budget import Budget, read_budget
from gpucourse.labs.aws.cheapest import replace_any_gpu
from gpucourse.labs.aws.choice import Choice, choices
from gpucourse.labs.aws.cleanup import unmanaged
from gpucourse.labs.aws.environment import make_environment, request_command
from gpucourse.labs.aws.lab import CloudLab, open_cloud
from gpucourse.labs.aws.ledger import read_prices
from gpucourse.labs.aws.quote import Quote, make_quote
from gpucourse.labs.request import PreflightRequest
from gpucourse.labs.results import PricedProposal
from gpucourse.model.cloud import Finding, Offers
from gpucourse.model.deployment import AwsDeployment
from gpucourse.model.event import stage

if TYPE_CHECKING:
    from gpucourse.labs.request import DeployRequest


@dataclass(kw_only=True)
class LabProposal:
    """One lab, ready to be built. `fresh`: nothing of it exists. `forgotten`: it exists, and Terraform's state is lost or
    outdated, so that some of it would be built a second time. `interrupted`: an earlier deploy of it did not end well.
    `allowed` are the types it may have, the requested one first."""

    choice: Choice
    deployment: AwsDeployment
    lab: CloudLab
    quote: Quote
    book: PriceBook
    zones: Offers
    allowed: tuple[str, ...]
    fresh: bool
    interrupted: bool
    forgotten: bool


@dataclass(kw_only=True)
class AwsProposal(PricedProposal):
    """What `deploy` is about to do: `lab_proposals`, one for each of `quotes`. `over_budget`: allow more than is left.
    `command`: what was typed."""

    lab_proposals: list[LabProposal]
    over_budget: bool
    command: str

    @property
    def fresh(self) -> bool:
        """Return whether nothing of these labs exists yet."""
        return all(lab_proposal.fresh for lab_proposal in self.lab_proposals)


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[AwsProposal]:
    """Check, plan and price the labs, with the locks of their stacks held for the block. A lab that is not built by its end
    leaves nothing.

    Raises UsageError and UnknownName for unknown names and values, MissingError with everything that blocks it, CloudError,
    TerraformFailed.
    """

    request, notes = replace_any_gpu(context, request)
    with ExitStack() as held:
        for stack in sorted(choice.stack for choice in choices(context, request)):
            held.enter_context(context.lock(stack, f"deploy {request.module}"))
        proposal = _make_proposal(context, request, choices(context, request))
        proposal.notes[:0] = notes
        try:
            yield proposal
        finally:
            for lab_proposal in proposal.lab_proposals:
                if lab_proposal.fresh:
                    lab_proposal.lab.forget_if_empty()


def _make_proposal(context: Context, request: DeployRequest, wanted: list[Choice]) -> AwsProposal:
    region = wanted[0].region
    account = Account(region, context.environ)
    with stage(context.watch, "account", f"asking AWS about {region}"):
        who, quotas = account.identity(), Quotas(account)
        for choice in wanted:
            if choice.standing is not None:
                check_identity(who, choice.standing)
        for choice in wanted:
            _check_growth(quotas, choice)
        fit = quota_fit.fit(quotas, wanted, chosen=request.nodes is not None)
        book = _book(context, account, fit.now)
        cidr, findings = _preflight(context, request, quotas, fit, book)
        zones = offerings.offers(account, (kind for choice in fit.now for kind in _types(choice)))
    budget = read_budget(context, {choice.stack for choice in fit.now})
    proposal = AwsProposal(
        lab_proposals=[],
        later=fit.later,
        findings=findings,
        budget=budget,
        notes=[*fit.notes, *_complaints(book)],
        over_budget=request.over_budget,
        command=request.command,
    )
    try:
        for choice in fit.now:
            place = new_deployment.AccountFacts(account=who.account, zones=zones, ssh_cidr=cidr)
            lab_proposal = _propose_lab(context, choice, place, book, budget, over_budget=request.over_budget)
            proposal.lab_proposals.append(lab_proposal)
            proposal.quotes.append(lab_proposal.quote)
            if lab_proposal.forgotten:
                lost = "does not know all of it" if lab_proposal.lab.list_existing() else "is lost"
                text = f"Terraform's state {lost}, so what exists of it is removed and rebuilt; outputs are collected first"
                proposal.notes.append(f"{choice.stack}: {text}")
    except BaseException:
        for lab_proposal in proposal.lab_proposals:
            if lab_proposal.fresh:
                lab_proposal.lab.forget_if_empty()
        raise
    return proposal


def _propose_lab(
    context: Context, choice: Choice, facts: new_deployment.AccountFacts, book: PriceBook, budget: Budget, *, over_budget: bool
) -> LabProposal:
    deployment = new_deployment.make_deployment(context, choice, facts)
    lab = open_cloud(context, deployment)
    try:
        lab.prepare(context.watch)
        with stage(context.watch, f"plan {choice.stack}", f"planning {choice.stack}"):
            changes = lab.plan(context.watch)
    except BaseException:
        if choice.standing is None:
            lab.forget_if_empty()
        raise
    hours = new_deployment.hours_left(choice, deployment)
    quote = make_quote(choice, deployment, book, changes, hours)
    affordable = tuple(
        sibling.instance_type
        for sibling in quote.siblings
        if over_budget or budget.allows(usd_over(sibling.usd_per_hour, hours))
    )
    return LabProposal(
        choice=choice,
        deployment=deployment,
        lab=lab,
        quote=quote,
        book=book,
        zones=facts.zones,
        allowed=(deployment.cloud.instance_type, *affordable),
        fresh=choice.standing is None,
        interrupted=choice.former is not None or (choice.standing is not None and deployment.phase != "ready"),
        forgotten=choice.standing is not None and deployment.inventory is not None and _is_forgotten(lab, changes),
    )


def _is_forgotten(lab: CloudLab, changes: list[tuple[str, str]]) -> bool:
    """Return whether Terraform would create something that exists. The account is queried only if it would create a node."""
    if not lab.list_existing():
        return True
    makes_nodes = any(action in {"create", "replace"} and "aws_instance" in address for action, address in changes)
    return makes_nodes and bool(unmanaged.find(lab))


def _check_growth(quotas: Quotas, choice: Choice) -> None:
    """Check that the quota allows an existing lab's additional instances beside what already runs. Raises MissingError if it
    does not."""
    if choice.standing is None:
        return
    growth = quota_fit.measure_growth(quotas.account, choice.need, choice.standing)
    assessed = quotas.assess([growth], choice.market)
    if all(item.enough is not False for item in assessed):
        return
    look = PreflightRequest(module=choice.module.id, region=choice.region, gpu=(choice.gpu,), nodes=choice.nodes)
    command = request_command(look)
    wrong = list_blocking([describe_quota(quotas.account, [growth], choice.market, item, command) for item in assessed])
    listed = "\n".join(f"{finding.what}: {finding.detail}" for finding in wrong)
    fitting = quota_fit.count_fitting_nodes(choice, growth, assessed)
    smaller = [f"--nodes {fitting} fits into the quota as it is"] if 0 < fitting < choice.nodes else []
    raise MissingError(
        f"the quota is too small for what {choice.stack} needs in addition to what already runs; nothing was changed\n{listed}",
        hint="\n".join(dict.fromkeys([*smaller, *(finding.mend for finding in wrong if finding.mend)])),
    )


def _preflight(
    context: Context, request: DeployRequest, quotas: Quotas, fit: quota_fit.Fit, book: PriceBook
) -> tuple[str, list[Finding]]:
    """Return the address for which SSH is opened, and the findings of the checks. Raises MissingError with everything that
    blocks."""
    new = [choice for choice in fit.now if choice.standing is None]
    if not new:
        return "", []
    said = request.ssh_cidr or context.settings.ssh_cidr
    special = bool(request.gpu or request.nodes)
    look = PreflightRequest(
        module=new[0].module.id if special else None, region=request.region, gpu=request.gpu, nodes=request.nodes
    )
    cidr, needs = validate_cidr(said) if said else "", [choice.need for choice in new]
    known = make_environment(context, quotas, needs, book, new[0].market, cidr)
    findings = preflight(replace(known, request=request_command(look)))
    wrong = list_blocking(findings)
    if wrong:
        listed = "\n".join(f"{finding.what}: {finding.detail}" for finding in wrong)
        smaller = [f"--nodes {fit.fewer} fits into the quota as it is"] if fit.fewer else []
        mends = "\n".join(dict.fromkeys([*smaller, *(finding.mend for finding in wrong if finding.mend)]))
        reasons = f", for {len(wrong)} reasons" if len(wrong) > 1 else ""
        raise MissingError(f"module {new[0].module.id} cannot be deployed{reasons}; nothing was built\n{listed}", hint=mends)
    return known.ssh_cidr or caller_cidr(context.environ), findings


def _book(context: Context, account: Account, now: list[Choice]) -> PriceBook:
    types = {kind for choice in now for kind in _types(choice)}
    return refresh_prices(read_prices(context, account.region), account, types, datetime.now(UTC))


def _types(choice: Choice) -> tuple[str, ...]:
    return tuple(dict.fromkeys((choice.instance_type, *choice.with_types, *choice.others)))


def _complaints(book: PriceBook) -> list[str]:
    return [f"prices could not be refreshed: {said}; those of an earlier day are used" for said in book.complaints]
