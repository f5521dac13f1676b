"""Build a proposed lab on AWS. If AWS has no capacity, try another zone or another instance type."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from gpucourse.aws import failures, instances, schedule
from gpucourse.context import Context
from gpucourse.errors import GpucourseError, InfrastructureError, Interrupted, LeftoverError, TerraformFailed
from gpucourse.labs.aws import failure_report, ledger, take_down
from gpucourse.labs.aws.budget import read_budget
from gpucourse.labs.aws.lab import CloudLab, open_cloud, tags
from gpucourse.labs.aws.ledger import store_prices
from gpucourse.labs.aws.plan import LabPlan
from gpucourse.labs.aws.readiness import wait_until_ready
from gpucourse.labs.collect_before_destroy import collect_runs
from gpucourse.labs.results import BuildResult, DeployResult, PricedProposal
from gpucourse.model.cloud import CloudInstance, Failure, Finding, Offers, Placement
from gpucourse.model.deployment import AwsDeployment, PlacementAttempt
from gpucourse.model.event import Note, Watcher, stage
from gpucourse.model.node import Inventory
from gpucourse.parallel import try_all
from gpucourse.units import now_utc
from gpucourse.workspace import deployments, regions
from gpucourse.workspace.exercises import all_names, ensure_copies

AT_ONCE = 4  # Terraform's provider needs a few hundred megabytes per stack


def build(context: Context, proposal: PricedProposal) -> BuildResult:
    """Build all labs of the proposal in parallel, and return the results. If one fails, the others are still built.

    If there is only one lab, its error is raised. Ctrl-C sends one SIGINT to each Terraform process and waits for it to end.
    Raises UsageError if another deploy has used up the budget in the meantime.
    """
    _reserve(context, proposal)
    plans, errors = proposal.plans, list[GpucourseError]()
    ensure_copies(context.paths, context.folders.exercises, all_names(context.folders.exercises))

    if len(plans) == 1:
        return BuildResult(labs=[_build(context, plans[0], proposal.command)])

    def build_one(plan: LabPlan) -> DeployResult:
        stack_context = context.with_label(plan.deployment.stack)
        try:
            return _build(stack_context, plan, proposal.command)
        except GpucourseError as error:
            errors.append(error)
            raise

    try:
        ends = try_all([partial(build_one, plan) for plan in plans], limit=AT_ONCE, on_interrupt=context.stop.set)
    except KeyboardInterrupt:
        raise Interrupted(
            "\n".join(error.what for error in errors) or "interrupted",
            hint="\n".join(filter(None, (error.hint for error in errors)))
            or f"gpucourse destroy {plans[0].choice.module.id} takes all of it down",
        ) from None
    labs = [end for end in ends if isinstance(end, DeployResult)]
    return BuildResult(labs=sorted(labs, key=lambda lab: lab.deployment.stack), errors=errors)


def _reserve(context: Context, proposal: PricedProposal) -> None:
    """Check the budget once more and record the labs with their price, under one lock.

    If two commands deploy at the same time, the second one then sees the cost of the first.
    """
    for plan in proposal.plans:
        store_prices(context, plan.book)
    with context.lock("budget", "deploy"):
        budget = read_budget(context, {plan.deployment.stack for plan in proposal.plans})
        budget.check(proposal.usd_until_end, over_budget=proposal.over_budget, command=proposal.command)
        for plan in proposal.plans:
            plan.record_price()
            deployments.save(context.paths, plan.deployment, "creating")


def _build(context: Context, plan: LabPlan, command: str) -> DeployResult:
    """Build one lab, and return the result. `command` is the command that the user typed."""
    start_s = time.monotonic()
    deployment = plan.deployment
    former = deployment.inventory
    regions.note(context.paths, deployment.cloud.region)
    if plan.ends or plan.forgotten:
        collect_runs(context, deployment, discard=False)
    with failure_report.record_outcome(context, deployment, command):
        lab = plan.lab
        if plan.interrupted or plan.forgotten:
            take_down.clear_unmanaged(context.watch, lab)
        try:
            if plan.changes or former is None:
                deployment.inventory = _build_with_failover(context, plan)
                deployment.terraform = lab.terraform.binary.describe()
                deployments.save(context.paths, deployment)
                lab = open_cloud(context, deployment)
            _guard_costs(context, lab, fresh=plan.fresh)
        except BaseException:
            _arm_remains(context, lab)
            raise
        deployment.inventory = wait_until_ready(context, lab)
        if deployment.cloud.backstop:  # it takes AWS some minutes to make a new role and new nodes known everywhere
            _arm(context, lab)
    return DeployResult(
        deployment=deployment,
        changes=plan.changes,
        dry_run=False,
        seconds=time.monotonic() - start_s,
        healed=_list_replaced_nodes(former, plan),
    )


def _build_with_failover(context: Context, plan: LabPlan) -> Inventory:
    """Build the lab in the first place that has capacity; return its nodes. Raises the error of the last attempt, worded as in
    the failure table."""
    deployment, lab = plan.deployment, plan.lab
    cloud = deployment.cloud
    route = Route(zone_offers=plan.offers, instance_types=plan.instance_types, with_types=plan.choice.with_types)
    while True:
        launch = Placement(zone=cloud.zone, instance_type=cloud.instance_type, placement_group=cloud.placement_group)
        try:
            with stage(context.watch, f"apply {deployment.stack}", f"building {deployment.stack} in {cloud.zone}"):
                return lab.up(context.watch)
        except TerraformFailed as error:
            failure = classify_failure(error)
            if failure is None:
                raise
            # Existing nodes stay in their zone: a move would destroy nodes on which people are working.
            next_launch = route.choose_next(launch, failure) if plan.fresh else None
            _note_attempt(context.watch, deployment, launch, failure, next_launch)
            if next_launch is None:
                raise failure_report.make_error(failure, cloud.tried, error) from error
        _remove_failed_attempt(context, lab)
        plan.move(next_launch)
        deployments.save(context.paths, deployment)
        lab = open_cloud(context, deployment)
        with stage(context.watch, f"plan {deployment.stack}", f"planning {deployment.stack} in {cloud.zone}"):
            lab.terraform.prepare(context.watch)
            lab.terraform.plan(context.watch)


def _note_attempt(
    watch: Watcher, deployment: AwsDeployment, launch: Placement, failure: Failure, next_launch: Placement | None
) -> None:
    """Record a failed attempt, and report where the next one will be made."""
    cloud = deployment.cloud
    if failure.can_retry_elsewhere or next_launch is not None:
        reason = failure.meaning + (", with nodes close together (placement group)" if launch.placement_group else "")
        cloud.tried.append(
            PlacementAttempt(
                zone=launch.zone,
                instance_type=launch.instance_type,
                code=failure.code,
                why=reason,
                at=now_utc(),
            )
        )
    if next_launch is None:
        return
    place = f"{next_launch.instance_type} in {next_launch.zone}"
    separation = " without a placement group" if launch.placement_group and not next_launch.placement_group else ""
    text = f"{launch.instance_type} in {launch.zone}: {failure.meaning} [{failure.code}]. Next: {place}{separation}"
    watch(Note(text=text, level="warning"))


def _remove_failed_attempt(context: Context, lab: CloudLab) -> None:
    """Remove everything that the failed attempt left, including resources that Terraform did not record or cannot remove.

    Raises LeftoverError if something remains, since the lab would then be paid for twice.
    """
    stack = lab.deployment.stack
    with stage(context.watch, f"undo {stack} {len(lab.cloud.tried)}", "removing what the failed attempt left"):
        take_down.destroy_with_terraform(context.watch, lab, lab.find_resources())
        _resources, leftovers = take_down.clear(context, lab.account, lab.deployment.uid, [lab.cloud.region])
    remaining = [resource for resource in leftovers if resource.seen]
    if remaining:
        names = ", ".join(f"{resource.kind} {resource.leftover.id}" for resource in remaining)
        raise LeftoverError(
            f"the failed attempt at {stack} left resources that could not be removed, so there is no other attempt: {names}",
            hint="by hand:\n" + "\n".join(resource.remove for resource in remaining),
        )


def _guard_costs(context: Context, lab: CloudLab, *, fresh: bool) -> None:
    """Limit the costs before anything else can fail.

    Schedule the end of the lab, write its costs to the ledger, and check that AWS terminates a node that powers itself off.
    """
    deployment, cloud = lab.deployment, lab.cloud
    alive = _arm(context, lab)
    if cloud.backstop:
        context.watch(Note(text=f"{schedule.WHAT}: {cloud.backstop}", level="warning"))
    ledger.settle(context.paths, lab.account, deployment.uid, expires=cloud.expires)
    _check_power_off(context, lab, alive, fresh=fresh)


def _arm_remains(context: Context, lab: CloudLab) -> None:
    """Schedule the end of the resources that a failed or interrupted build left, because the user may never come back to
    them."""
    try:
        if any(instance.alive for instance in instances.find(lab.account, stack=lab.deployment.uid)):
            _arm(context, lab, listed_s=0.0)
    except GpucourseError as error:
        context.watch(Note(text=f"{schedule.WHAT}: {error.what}", level="warning"))


def _arm(
    context: Context,
    lab: CloudLab,
    *,
    arm: Callable[..., Finding] = schedule.arm,
    listed_s: float = instances.LISTED_S,
) -> list[CloudInstance]:
    """Schedule the end of each live instance of the lab; return the instances. If some have no schedule, the record says
    why."""
    deployment, cloud = lab.deployment, lab.cloud
    names = [node.name for node in deployment.nodes]
    with stage(context.watch, f"backstop {deployment.stack}", "a schedule ends the nodes from outside"):
        alive = instances.find_nodes(lab.account, stack=deployment.uid, names=names, timeout_s=listed_s)
        ids = [instance.id for instance in alive]
        finding = arm(lab.account, ids, datetime.fromisoformat(cloud.expires), project_tags=tags(context.workspace, deployment))
    missing = sorted(set(names) - {instance.node for instance in alive})
    consequence = "so nothing is scheduled to terminate it at the deadline"
    absent = f"AWS lists no instance for {', '.join(missing)}, {consequence}" if missing else ""
    cloud.backstop = absent if finding.state == "ok" else finding.detail
    deployments.save(context.paths, deployment)
    return alive


def _check_power_off(context: Context, lab: CloudLab, alive: list[CloudInstance], *, fresh: bool) -> None:
    """Check that EC2 terminates spot instances that power off, since the deadline and the idle agent only power them off.

    Raises InfrastructureError if EC2 keeps them, or if EC2 does not answer and there is no backstop either. A new lab (`fresh`)
    is taken down first; LeftoverError is raised if that fails.
    """
    spot = [instance.id for instance in alive if instance.market == "spot"]
    try:
        survivors = instances.survive_power_off(lab.account, spot)
    except GpucourseError as error:
        problem = f"EC2 does not say whether powering off ends {', '.join(spot)}: {error.what}"
        if not lab.cloud.backstop:
            context.watch(Note(text=f"{problem}; the backstop ends every node ten minutes after the deadline", level="warning"))
            return
        problem = f"{problem}; and there is no backstop, so a forgotten node may never be ended"
        mend = f"; {schedule.SET_UP}"
    else:
        if not survivors:
            return
        problem = f"after a power-off, {', '.join(survivors)} would be stopped, not terminated, and the disks would cost money"
        mend = ""
    if fresh:
        _remove_refused(context, lab, problem)
    raise InfrastructureError(problem, hint=f"deploy without --spot{mend}")


def _remove_refused(context: Context, lab: CloudLab, problem: str) -> None:
    """Take down a new lab that cannot be kept; `problem` says why. Raises LeftoverError, with the same reason, if something
    remains."""
    context.watch(Note(text=f"{problem}. The lab is being taken down", level="warning"))
    try:
        _remove_failed_attempt(context, lab)
    except LeftoverError as error:
        raise LeftoverError(f"{problem}\n{error.what}", hint=error.hint) from error
    lab.deployment.inventory = None


def _list_replaced_nodes(former: Inventory | None, plan: LabPlan) -> list[str]:
    """Return the Terraform addresses of existing nodes that are replaced. Additional nodes are not listed."""
    addresses = [address for action, address in plan.changes if action in {"create", "replace"} and "aws_instance" in address]
    names = [node.name for node in former.nodes] if former else []
    return [address for address in addresses if any(f'["{name}-' in address for name in names)]


_GROUP = ("placement group", "placementgroup", "placement_group")


@dataclass(kw_only=True)
class Route:
    """The places to try for one lab, in order.

    `instance_types`: the requested type, then the learner's alternatives.
    `with_types`: further types that the zone must offer.
    """

    zone_offers: Offers
    instance_types: tuple[str, ...]
    with_types: tuple[str, ...] = ()
    _tried: set[tuple[str, str]] = field(default_factory=set)

    def choose_next(self, place: Placement, failure: Failure) -> Placement | None:
        """Return the place to try after this one failed; None if no other place would help, or if all have been tried."""
        if place.placement_group and _is_about_group(failure):
            return replace(place, placement_group=False)
        if not failure.can_retry_elsewhere:
            return None
        self._tried.add((place.zone, place.instance_type))
        following = self._find_next(failure.suggested, placement_group=place.placement_group)
        if following is None and place.placement_group:  # AWS has capacity for separate nodes more often than for adjacent ones
            self._tried.clear()
            following = self._find_next((), placement_group=False)
        return following

    def _find_next(self, suggested: Sequence[str], *, placement_group: bool) -> Placement | None:
        """Return the first place that has not been tried yet. For each type, the zones that AWS suggested come first."""
        for kind in self.instance_types:
            zones = self.zone_offers.find_common_zones(frozenset({kind, *self.with_types}))
            for zone in dict.fromkeys([*(zone for zone in suggested if zone in zones), *zones]):
                if (zone, kind) not in self._tried:
                    return Placement(zone=zone, instance_type=kind, placement_group=placement_group)
        return None


def _is_about_group(failure: Failure) -> bool:
    """Return whether the placement group, not the number of machines, caused the failure."""
    text = f"{failure.code} {failure.message}".lower()
    return failure.kind not in {"permission", "credentials", "throttle"} and any(words in text for words in _GROUP)


def classify_failure(error: TerraformFailed) -> Failure | None:
    """Return the AWS error that made Terraform fail; None if no error came from AWS. If there are several, return the one that
    decides what to do."""
    texts: Iterable[str] = error.every or (f"{error.summary}\n{error.detail}",)
    return failures.pick_deciding(failure for text in texts if (failure := failures.from_text(text)) is not None)
