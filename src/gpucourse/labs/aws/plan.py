"""The plan of a lab on AWS: its type, zone, number of nodes, end and price. Only this module determines them.

with propose(context, request) as proposal:   one plan for each lab: what would be built, and at what price
    ...                                       show it, ask
    build(context, proposal)                  build exactly that (labs.aws.build)

`survey` asks the account about the requested labs; `make_plan` chooses the place of one lab and makes its record.
"""

from __future__ import annotations

import shlex
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, partial

from gpucourse.aws import instances, offerings, quota, tags
from gpucourse.aws.caller import caller_cidr, validate_cidr
from gpucourse.aws.money import Charge, PriceBook, estimate, refresh_prices, usd_over, usd_per_hour
from gpucourse.aws.offerings import instance_type
from gpucourse.aws.preflight import LabEnvironment, describe_quota, list_blocking, preflight
from gpucourse.aws.quota import Quotas, needs
from gpucourse.aws.session import Account
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, MissingError
from gpucourse.labs.aws.account import check_identity
from gpucourse.labs.aws.budget import read_budget
from gpucourse.labs.aws.cheapest import replace_any_gpu
from gpucourse.labs.aws.choice import Choice, choices
from gpucourse.labs.aws.lab import CloudLab, open_cloud
from gpucourse.labs.aws.ledger import read_prices
from gpucourse.labs.aws.take_down import find_unmanaged
from gpucourse.labs.request import DeployRequest, PreflightRequest, list_flags
from gpucourse.labs.results import PricedProposal
from gpucourse.model.cloud import Finding, LabNeed, Market, Offers, Placement, Quota, Sibling
from gpucourse.model.deployment import AwsDeployment, Cloud
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.provision.binary import find_terraform
from gpucourse.storage import find_login
from gpucourse.units import later, now_utc, seconds_since
from gpucourse.workspace import deployments, regions


@dataclass(kw_only=True)
class LabPlan:
    """One lab, ready to be built.

    `deployment`: its record, with region, zone, type, market and end.
    `offers`: the zones of the region, with the instance types that each offers.
    `book`: the prices in the region.
    `hours`: the hours until the lab ends.
    `interrupted`: an earlier deploy of the lab did not succeed.
    `instance_types`: the types that the lab may have, the requested one first.
    `changes`: Terraform's plan, as (action, address).
    `forgotten`: the lab exists, but Terraform's state is lost or outdated, and Terraform would build parts of it a second time.
    """

    choice: Choice
    deployment: AwsDeployment
    lab: CloudLab
    offers: Offers
    book: PriceBook
    hours: Decimal
    interrupted: bool
    instance_types: tuple[str, ...] = ()
    changes: list[tuple[str, str]] = field(default_factory=list)
    forgotten: bool = False

    @property
    def fresh(self) -> bool:
        """Return whether no part of the lab exists yet."""
        return self.choice.existing is None

    def estimate(self, name: str, zone: str = "") -> tuple[Charge, ...]:
        """Return the lab's charges per hour with nodes of this type, in `zone` if it is given."""
        need = self.choice.need.with_workers(instance_type=name)
        return estimate(self.book, need, market=self.deployment.cloud.market, zone=zone)

    @property
    def charges(self) -> tuple[Charge, ...]:
        """Return the lab's charges per hour in its planned zone, item by item."""
        cloud = self.deployment.cloud
        return self.estimate(cloud.instance_type, cloud.zone)

    @property
    def per_hour(self) -> Decimal:
        """Return the cost of the lab, in USD per hour."""
        return usd_per_hour(self.charges)

    @property
    def usd_until_end(self) -> Decimal:
        """Return the cost of the lab, in USD, if it exists until its deadline."""
        return usd_over(self.per_hour, self.hours)

    @property
    def usd_usually(self) -> Decimal:
        """Return the cost of the lab, in USD, for as long as the module usually takes."""
        return usd_over(self.per_hour, self.choice.need.hours)

    @property
    def siblings(self) -> tuple[Sibling, ...]:
        """Return the other instance types that the lab may use, each with the lab's price."""
        return tuple(Sibling(instance_type=name, usd_per_hour=usd_per_hour(self.estimate(name))) for name in self.choice.others)

    @property
    def creates(self) -> int:
        """Return how many resources are created or replaced."""
        return sum(action in {"create", "replace"} for action, _address in self.changes)

    @property
    def ends(self) -> int:
        """Return how many existing nodes are removed or replaced."""
        return sum(action in {"delete", "replace"} and "aws_instance" in address for action, address in self.changes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return warnings about removed or replaced nodes, to show before the user confirms."""
        if not self.ends:
            return ()
        nodes = f"{self.ends} of its nodes {'is' if self.ends == 1 else 'are'} removed or replaced"
        return (f"{self.deployment.stack}: {nodes}; runs on this lab are stopped first, and their outputs are collected",)

    def record_price(self) -> None:
        """Write the cost of the lab in its planned zone, and the source of the price, to the lab's record."""
        cloud, charges = self.deployment.cloud, self.charges
        cloud.usd_per_hour = f"{usd_per_hour(charges):.4f}"
        cloud.priced = f"{charges[0].rate.origin}; others are list prices of {min(charge.rate.date for charge in charges)}"

    def move(self, place: Placement) -> None:
        """Move the lab to another zone or type, at the price there."""
        cloud = self.deployment.cloud
        cloud.zone, cloud.instance_type, cloud.placement_group = place.zone, place.instance_type, place.placement_group
        cloud.gpu = instance_type(cloud.instance_type).gpu.lower()
        self.record_price()


@dataclass(kw_only=True)
class Fit:
    """The labs to build now, the labs that have to wait until those are destroyed, and notes for the user.

    `fewer`: how many nodes would fit if the learner typed more than the quota allows; otherwise 0.
    """

    now: list[Choice] = field(default_factory=list)
    later: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fewer: int = 0


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The account's answers about the requested labs.

    `account`: the account number.
    `offers`: the instance types that each zone offers.
    `ssh_cidr`: the address to which SSH is opened.
    `findings`: the results of the preflight checks.
    """

    account: str
    fit: Fit
    offers: Offers
    book: PriceBook
    ssh_cidr: str
    findings: list[Finding]


@contextmanager
def propose(context: Context, request: DeployRequest) -> Iterator[PricedProposal]:
    """Check, plan and price the labs, and yield the proposal.

    The stacks are locked during the block. A lab that is not built in the block leaves nothing behind.

    Raises UsageError and UnknownName for unknown names and values, MissingError, which lists everything that blocks the labs,
    CloudError and TerraformFailed.
    """
    request, notes = replace_any_gpu(context, request)
    plans: list[LabPlan] = []
    with ExitStack() as locks:
        for stack in sorted(choice.stack for choice in choices(context, request)):
            locks.enter_context(context.lock(stack, f"deploy {request.module}"))
        try:
            proposal = _make_proposal(context, request, choices(context, request), plans)
            proposal.notes[:0] = notes
            yield proposal
        finally:
            for plan in plans:
                if plan.fresh:
                    plan.lab.terraform.discard_if_empty()


def _make_proposal(context: Context, request: DeployRequest, choices: list[Choice], plans: list[LabPlan]) -> PricedProposal:
    """Return the proposal. Each plan is added to `plans` before Terraform writes anything for it."""
    facts = survey(context, request, choices)
    selection, notes = facts.fit.now, list(facts.fit.notes)
    notes += [f"prices could not be refreshed: {reason}; prices of an earlier day are used" for reason in facts.book.complaints]
    budget = read_budget(context, {choice.stack for choice in selection})
    for choice in selection:
        plan = make_plan(context, choice, facts)
        plans.append(plan)
        _plan_with_terraform(context.watch, plan)
        plan.instance_types += tuple(
            sibling.instance_type
            for sibling in plan.siblings
            if request.over_budget or budget.allows(usd_over(sibling.usd_per_hour, plan.hours))
        )
        if plan.forgotten:
            trouble = "does not contain the whole lab" if plan.lab.terraform.addresses() else "is lost"
            text = f"Terraform's state {trouble}, so its existing parts are removed and rebuilt; outputs are collected first"
            notes.append(f"{choice.stack}: {text}")
    return PricedProposal(
        plans=plans,
        later=facts.fit.later,
        findings=facts.findings,
        budget=budget,
        notes=notes,
        over_budget=request.over_budget,
        command=request.command,
    )


def _plan_with_terraform(watch: Watcher, plan: LabPlan) -> None:
    plan.lab.terraform.prepare(watch)
    stack = plan.deployment.stack
    with stage(watch, f"plan {stack}", f"planning {stack}"):
        plan.changes = plan.lab.terraform.plan(watch)
    plan.forgotten = not plan.fresh and plan.deployment.inventory is not None and _is_forgotten(plan)


def _is_forgotten(plan: LabPlan) -> bool:
    """Return whether Terraform's state is empty, or Terraform would create resources that already exist. Query the account
    only if Terraform would create a node."""
    if not plan.lab.terraform.addresses():
        return True
    makes_nodes = any(action in {"create", "replace"} and "aws_instance" in address for action, address in plan.changes)
    return makes_nodes and bool(find_unmanaged(plan.lab))


def survey(context: Context, request: DeployRequest, choices: list[Choice]) -> Survey:
    """Return the account's answers about these labs, which are all in one region.

    Raises MissingError, which lists everything that blocks the labs, and the errors of `Account.call`.
    """
    region = choices[0].region
    account = Account(region, context.environ)
    with stage(context.watch, "account", f"asking AWS about {region}"):
        identity, quotas = account.identity(), Quotas(account)
        for choice in choices:
            if choice.existing is not None:
                check_identity(identity, choice.existing)
                check_growth(quotas, choice, choice.existing)
        fitting = fit(quotas, choices, is_fixed=request.nodes is not None)
        types = {name for choice in fitting.now for name in (choice.instance_type, *choice.with_types, *choice.others)}
        book = refresh_prices(read_prices(context.paths, region), account, types, datetime.now(UTC))
        find_offers = cache(partial(offerings.offers, account, frozenset(types)))
        cidr, findings = "", list[Finding]()
        if new := [choice for choice in fitting.now if choice.existing is None]:
            cidr_text = request.ssh_cidr or context.settings.ssh_cidr
            environment = make_environment(
                context,
                quotas,
                [choice.need for choice in new],
                book,
                new[0].market,
                validate_cidr(cidr_text) if cidr_text else "",
            )
            special = bool(request.gpu or request.nodes)
            look = PreflightRequest(
                module=new[0].module.id if special else None, region=request.region, gpu=request.gpu, nodes=request.nodes
            )
            findings = preflight(replace(environment, find_offers=find_offers, request=request_command(look)))
            _refuse_if_blocked(new[0], findings, fitting)
            cidr = environment.ssh_cidr or caller_cidr(context.environ)
        return Survey(account=identity.account, fit=fitting, offers=find_offers(), book=book, ssh_cidr=cidr, findings=findings)


def make_plan(context: Context, choice: Choice, facts: Survey) -> LabPlan:
    """Return the plan of a lab. It is not stored, and Terraform has not planned it yet.

    Raises MissingError if no zone offers what the lab needs, or if Terraform is not installed.
    """
    deployment = _make_deployment(context, choice, facts)
    hours = Decimal(str(choice.ttl_hours))
    if choice.existing is not None:
        hours = max(Decimal(0), round(Decimal(str(-seconds_since(deployment.cloud.expires))) / 3600, 4))
    return LabPlan(
        choice=choice,
        deployment=deployment,
        lab=open_cloud(context, deployment),
        offers=facts.offers,
        book=facts.book,
        hours=hours,
        interrupted=choice.former is not None or (choice.existing is not None and deployment.phase != "ready"),
        instance_types=(deployment.cloud.instance_type,),
    )


def _make_deployment(context: Context, choice: Choice, facts: Survey) -> AwsDeployment:
    if choice.existing is not None:
        return _use_former_record(context, choice, choice.existing)
    kind = instance_type(choice.instance_type)
    place = offerings.first_attempt(facts.offers, kind.name, with_types=choice.with_types)
    if place is None:
        raise MissingError(
            f"no zone of {choice.region} offers {kind.name}",
            hint="another --gpu, or another --region: gpucourse doctor --target aws",
        )
    now = now_utc()
    return AwsDeployment(
        stack=choice.stack,
        uid=choice.former.uid if choice.former else f"{context.workspace.id}-{uuid.uuid4().hex[:12]}",
        module=choice.module.id,
        title=choice.module.title,
        template=choice.lab.template,
        phase="creating",
        created=now,
        updated=now,
        nodes_wanted=choice.nodes,
        cloud=Cloud(
            account=facts.account,
            region=choice.region,
            zone=place.zone,
            instance_type=place.instance_type,
            gpu=choice.gpu,
            market=choice.market,
            owner=tags.make_value(context.settings.owner or find_login()),
            ssh_cidr=facts.ssh_cidr,
            ttl_hours=choice.ttl_hours,
            expires=later(now, choice.ttl_hours * 3600),
            placement_group=choice.lab.placement_group and choice.nodes > 1 and kind.cluster_group,
        ),
    )


def _use_former_record(context: Context, choice: Choice, deployment: AwsDeployment) -> AwsDeployment:
    """Return the existing record with the requested number of nodes. If the lab has expired and none of its instances is
    alive, set a new end."""
    deployment.nodes_wanted = choice.nodes
    cloud = deployment.cloud
    cloud.reservation = None  # left by a command that was killed
    if seconds_since(cloud.expires) > 0:
        lab_instances = instances.find(Account(cloud.region, context.environ), stack=deployment.uid)
        if not any(instance.alive for instance in lab_instances):
            cloud.expires = later(now_utc(), cloud.ttl_hours * 3600)
            context.watch(
                Note(text=f"the deadline of {deployment.stack} had passed: the lab gets {cloud.ttl_hours:g} more hours")
            )
    return deployment


def fit(quotas: Quotas, choices: list[Choice], *, is_fixed: bool) -> Fit:
    """Return which labs fit the free quota: all now, or some now and the others later. If necessary, use
    fewer nodes.

    An unknown limit counts as enough, because the launch will show whether it is. The first lab is always in `now`: if it does
    not fit, the preflight checks say so.

    `is_fixed`: the learner typed the number of nodes, so it is not reduced.
    """
    result = Fit(now=[choice for choice in choices if choice.existing is not None])
    new = [choice for choice in choices if choice.existing is None]
    if not new:
        return result
    market = new[0].market
    remaining = {(item.code, item.market): item.free for item in quotas.assess([choice.need for choice in new], market)}
    room = _count_free_networks(quotas.account) if len(new) > 1 else None
    for choice in new:
        candidate = choice if _holds(remaining, choice, market) else None
        smaller = _find_smaller(remaining, choice, market) if candidate is None else None
        if not is_fixed:
            candidate = candidate or smaller
        elif smaller is not None:
            result.fewer = smaller.nodes
        full = room is not None and sum(item.existing is None for item in result.now) >= room
        if (candidate is None or full) and result.now:
            result.later.append(choice)
            continue
        if candidate is not None and candidate.nodes < choice.nodes:
            result.notes.append(
                f"the quota allows {candidate.nodes} nodes, not {choice.nodes}: "
                f"module {choice.module.id} works with that many as well"
            )
        for key, vcpus in _count(candidate or choice, market).items():
            free = remaining[key]
            remaining[key] = None if free is None else free - vcpus
        result.now.append(candidate or choice)
    return result


def check_growth(quotas: Quotas, choice: Choice, existing: AwsDeployment) -> None:
    """Check that the quota allows the instances that an existing lab needs in addition to its running ones.

    Raises MissingError if it does not.
    """
    growth = measure_growth(quotas.account, choice.need, existing)
    assessed = quotas.assess([growth], choice.market)
    if all(item.enough is not False for item in assessed):
        return
    look = PreflightRequest(module=choice.module.id, region=choice.region, gpu=(choice.gpu,), nodes=choice.nodes)
    command = request_command(look)
    reasons = list_blocking([describe_quota(quotas.account, [growth], choice.market, item, command) for item in assessed])
    fitting = _count_fitting_nodes(choice, growth, assessed)
    lines, hint = _list_reasons(reasons, fitting if fitting < choice.nodes else 0)
    raise MissingError(
        f"the quota is too small for the instances that {choice.stack} needs besides its running ones; nothing was changed\n"
        f"{lines}",
        hint=hint,
    )


def measure_growth(account: Account, need: LabNeed, existing: AwsDeployment) -> LabNeed:
    """Return the machines that an existing lab needs in addition to its running instances. The counts are 0 if all are running.

    Raises the errors of `Account.call`.
    """
    instances_now = instances.find(account, stack=existing.uid)
    running = Counter(instance.instance_type for instance in instances_now if instance.state in {"pending", "running"})
    whole = need.with_workers(instance_type=existing.cloud.instance_type)
    missing = (replace(machines, count=max(0, machines.count - running[machines.instance_type])) for machines in whole.machines)
    return replace(whole, machines=tuple(missing), smaller="")


def _count_fitting_nodes(choice: Choice, growth: LabNeed, assessed: list[Quota]) -> int:
    """Return how many nodes an existing lab can have within these quotas; 0 if the free quota is unknown."""
    workers = growth.machines[-1]
    kind = instance_type(workers.instance_type)
    free = next((item.free for item in assessed if item.code == kind.quota[workers.market(choice.market)]), None)
    running = choice.nodes - workers.count
    return running + free // kind.vcpus if free is not None else 0


def _count_free_networks(account: Account) -> int | None:
    """Return how many more labs the region's limit on networks allows; None if unknown. Each lab needs a network of its own."""
    try:
        return max(0, quota.limit(account, quota.VPCS, "vpc") - quota.count_networks(account))
    except GpucourseError:
        return None


def _find_smaller(remaining: dict[tuple[str, Market], int | None], choice: Choice, market: Market) -> Choice | None:
    min_count = choice.lab.min_nodes or choice.nodes
    return next(
        (
            smaller_choice
            for count in range(choice.nodes - 1, min_count - 1, -1)
            if _holds(remaining, smaller_choice := choice.resize(count), market)
        ),
        None,
    )


def _holds(remaining: dict[tuple[str, Market], int | None], choice: Choice, market: Market) -> bool:
    return all(free is None or vcpus <= free for key, vcpus in _count(choice, market).items() for free in (remaining[key],))


def _count(choice: Choice, market: Market) -> dict[tuple[str, Market], int]:
    return {key: sum(modules.values()) for key, modules in needs([choice.need], market).items()}


def _refuse_if_blocked(choice: Choice, findings: list[Finding], fitting: Fit) -> None:
    if blockers := list_blocking(findings):
        reason_lines, hint = _list_reasons(blockers, fitting.fewer)
        reasons = f", for {len(blockers)} reasons" if len(blockers) > 1 else ""
        raise MissingError(
            f"module {choice.module.id} cannot be deployed{reasons}; nothing was built\n{reason_lines}", hint=hint
        )


def _list_reasons(blockers: list[Finding], fewer: int) -> tuple[str, str]:
    """Return the reasons that block a lab, and the remedies. `fewer`: how many nodes fit the quota, or 0."""
    smaller = [f"--nodes {fewer} fits the present quota"] if fewer > 0 else []
    mends = dict.fromkeys([*smaller, *(finding.mend for finding in blockers if finding.mend)])
    return "\n".join(f"{finding.what}: {finding.detail}" for finding in blockers), "\n".join(mends)


def make_environment(
    context: Context, quotas: Quotas, labs: Sequence[LabNeed], book: PriceBook, market: Market, ssh_cidr: str
) -> LabEnvironment:
    """Return the input of the preflight checks for labs of this workspace. This computer's address is left out unless it is
    already known.
    """
    budget = read_budget(context, ())
    public = context.paths.client_key.with_name(f"{context.paths.client_key.name}.pub")
    types = [machines.instance_type for lab in labs for machines in lab.machines]
    return LabEnvironment(
        quotas=quotas,
        labs=labs,
        find_offers=partial(offerings.offers, quotas.account, types),
        market=market,
        terraform=_find_terraform_version(context.environ),
        public_key=public.read_text(encoding="utf-8") if public.is_file() else "",
        ssh_cidr=ssh_cidr,
        book=book,
        budget=budget.budget,
        spent=budget.spent + budget.reserved,
        recorded_stacks=frozenset(
            deployment.uid for deployment in deployments.every(context.paths) if isinstance(deployment, AwsDeployment)
        ),
        regions=regions.read_used_regions(context.paths),
        ask_address=partial(caller_cidr, context.environ),
    )


def _find_terraform_version(environ: Mapping[str, str]) -> str | None:
    try:
        return ".".join(map(str, find_terraform(environ).version))
    except MissingError:
        return None


def request_command(look: PreflightRequest) -> str:
    """Return the command that requests the quota for these labs in their region, without the flag that chooses the market."""
    flags = list_flags(look, without={"spot", "ssh_cidr"})
    words = [word for words in flags.values() for word in words]
    return shlex.join(["gpucourse", "doctor", "--target", "aws", "--request-quota", *words])
