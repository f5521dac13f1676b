"""The command `deploy`, for every target: shows what would be built, asks for confirmation if that costs money, then builds
it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpucourse.cli.flags import ModuleArgument, choice_option, name_gpus, name_two_gpus, parse_seconds, split_list
from gpucourse.cli.output import UNSET, JsonDocument, LabDocument, UnsetType
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted
from gpucourse.labs.target import list_targets
from gpucourse.model.cloud import Finding, Sibling
from gpucourse.ui.console import ErrorDocument, describe_errors

if TYPE_CHECKING:
    from gpucourse.cli.session import Session
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import BuildResult, PricedProposal, UnknownHosts
    from gpucourse.labs.target import Target
    from gpucourse.model.record import RunRecord


class BuiltLab(JsonDocument):
    """The result of `deploy` for one lab, or its preview. Each of `changes` is a pair of an action and a Terraform address."""

    deployment: LabDocument
    changes: list[tuple[str, str]]
    dry_run: bool
    seconds: float
    healed: list[str]


class OneBuiltLab(BuiltLab):
    """The output of `deploy` for one lab that costs nothing."""


class QuoteLine(JsonDocument):
    """One item that costs money: its price in USD per hour, and the source of that price."""

    what: str
    kind: str
    usd_per_hour: str
    source: str
    date: str
    note: str


class QuoteDocument(JsonDocument):
    """The price of one lab in USD."""

    stack: str
    module: str
    title: str
    region: str
    zone: str
    instance_type: str
    gpu: str
    market: str
    nodes: int
    changes: list[tuple[str, str]]
    hours: Decimal
    expires: str
    usual_hours: Decimal
    head: str
    siblings: list[Sibling]
    notes: list[str]
    usd_per_hour: str
    usd_to_the_end: str
    usd_usually: str
    lines: list[QuoteLine]


class QuoteList(JsonDocument):
    """The output of `deploy --dry-run` for labs that cost money. `later` lists the GPUs that have to wait, because the quota
    does not allow them alongside the others. `reserved_usd` is what other labs will still cost until their deadlines, if a
    budget is set."""

    quotes: list[QuoteDocument]
    later: list[str]
    notes: list[str]
    findings: list[Finding]
    budget_usd: str | None
    spent_usd: str
    reserved_usd: str
    left_usd: str | None


class BuiltLabs(QuoteList):
    """The output of `deploy` for labs that cost money, with `error` if not every lab was built."""

    labs: list[BuiltLab]
    error: ErrorDocument | UnsetType = UNSET


def deploy(
    session: Session,
    module: ModuleArgument,
    nodes: Annotated[int | None, typer.Option("--nodes", help="The number of nodes.")] = None,
    target: Annotated[
        str | None,
        choice_option(
            "--target",
            "Where to deploy: on simulated nodes here, in your AWS account, on your own hosts, on a Slurm cluster.",
            list_targets(),
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", help="Simulated nodes: limit the network to 1gbit or 1gbit,2ms; none: no limit.")
    ] = None,
    unpack_slurm: Annotated[
        bool, typer.Option("--unpack-slurm", help="Simulated nodes: download Slurm for these nodes, without installing it.")
    ] = False,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            help=f"On AWS: {name_gpus()}; any: the cheapest today; several side by side: {name_two_gpus()}. "
            "On a Slurm cluster: the type of its GPUs.",
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="On AWS: smaller nodes, if the module allows them: xlarge.")
    ] = None,
    spot: Annotated[
        bool | None, typer.Option("--spot/--no-spot", help="On AWS: spot instances, cheaper, but AWS may take them back.")
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="On AWS: the region, such as us-east-2.")] = None,
    ttl: Annotated[str | None, typer.Option("--ttl", help="On AWS: time to live: 4h.")] = None,
    ssh_cidr: Annotated[str, typer.Option("--ssh-cidr", help="On AWS: the only address that may log in: 203.0.113.7/32")] = "",
    hosts: Annotated[str | None, typer.Option("--hosts", help="Your own machines: me@gpu1,me@gpu2:2222")] = None,
    key: Annotated[Path | None, typer.Option("--key", help="On hosts and clusters: the private key to log in with.")] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option("--trust", help="On hosts: the fingerprint of a host key to trust: SHA256:..."),
    ] = None,
    on_login_node: Annotated[
        bool, typer.Option("--on-login-node", help="On hosts: compute even on a login node of a Slurm cluster.")
    ] = False,
    login: Annotated[str, typer.Option("--login", help="A Slurm cluster: its login node, as ssh accepts it: me@cluster")] = "",
    cluster: Annotated[str, typer.Option("--cluster", help="A Slurm cluster by its name in gpucourse.yaml.")] = "",
    partition: Annotated[str, typer.Option("--partition", help="On a Slurm cluster: the partition for GPU jobs.")] = "",
    account: Annotated[str, typer.Option("--account", help="On a Slurm cluster: the account that pays for jobs.")] = "",
    qos: Annotated[str, typer.Option("--qos", help="On a Slurm cluster: the QoS of jobs.")] = "",
    slurm: Annotated[
        list[str] | None,
        typer.Option("--slurm", help="On a Slurm cluster: another setting, or option of sbatch, for all jobs: constraint=ib"),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="On a Slurm cluster: create a virtual environment with torch there, in one job.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be built, and stop.")] = False,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Skip the confirmation (for paid labs, and before nodes with a run on them are removed)."
        ),
    ] = False,
    over_budget: Annotated[
        bool, typer.Option("--yes-over-budget", help="On AWS: build it even if that exceeds the budget.")
    ] = False,
) -> None:
    """Deploy a module's lab; deploy again to repair dead nodes."""
    from gpucourse.labs.deploy import choose_target
    from gpucourse.labs.request import DeployRequest
    from gpucourse.labs.results import UnknownHosts

    request = DeployRequest(
        module=module,
        nodes=nodes,
        target=target,
        dry_run=dry_run,
        link=link,
        unpack_slurm=unpack_slurm,
        gpu=split_list(gpu),
        size=size,
        spot=spot,
        region=region,
        ttl_s=parse_seconds(ttl, f"gpucourse deploy {module} --target aws --ttl 4h", flag="--ttl"),
        ssh_cidr=ssh_cidr,
        over_budget=over_budget,
        hosts=split_list(hosts),
        key=key,
        trust=tuple(trust or ()),
        on_login_node=on_login_node,
        login=login,
        cluster=cluster,
        partition=partition,
        account=account,
        qos=qos,
        slurm=tuple(slurm or ()),
        install=install,
    )
    session.require_module(module)
    chosen_target = choose_target(session.context.settings, request)
    request = replace(request, target=chosen_target.name)
    session.console.mode(chosen_target.name)
    try:
        _deploy(session, chosen_target, request, yes=yes)
    except UnknownHosts as error:
        if session.options.json or not sys.stdin.isatty() or not _confirm_fingerprints(session, error):
            raise
        trusted = (*request.trust, *(stranger.fingerprint for stranger in error.strangers))
        _deploy(session, chosen_target, replace(request, trust=trusted), yes=yes)


def _confirm_fingerprints(session: Session, error: UnknownHosts) -> bool:
    """Return whether the person confirms every fingerprint. `--yes` does not confirm them."""
    return all(
        session.console.ask(f"{host.typed} shows the host key {host.fingerprint}. Is that the right machine?", sys.stdin)
        for host in error.strangers
    )


def _deploy(session: Session, target: Target[Any, Any], request: DeployRequest, *, yes: bool) -> None:
    """Show what would be built, and build it if the person agrees. The person must agree to the costs, and to the end of the
    runs on nodes that are removed or rebuilt."""
    from gpucourse.labs.results import PricedProposal
    from gpucourse.ui.views.cloud import quote
    from gpucourse.ui.views.lab import deploy_plan

    prices = None
    with ExitStack() as stack:
        with session.console.watch() as live:
            proposal = stack.enter_context(target.propose(session.context.watched_by(live), request))
        if isinstance(proposal, PricedProposal):
            prices = _make_quote_list(proposal)  # before the build, because AWS may have capacity for the lab only elsewhere
            if request.dry_run:
                session.present(quote(proposal, command=request.command), prices)
                return
            _agree_to_costs(session, request, proposal, yes=yes)
        else:
            if proposal.ends:
                _confirm_stopping_runs(session, request, proposal.ends, yes=yes)
            if request.dry_run:
                session.present(
                    deploy_plan(proposal.planned, session.find_step(request.module)), OneBuiltLab.build(proposal.planned)
                )
                return
        with session.console.watch() as live:
            result = target.build(session.context.watched_by(live), proposal)
    _show_built(session, result, prices, ask=not yes)


def _confirm_stopping_runs(session: Session, request: DeployRequest, runs: Sequence[RunRecord], *, yes: bool) -> None:
    """Name the runs that would end because their nodes are removed or rebuilt, and ask for confirmation. Raises Interrupted if
    the person declines."""
    from gpucourse.cli.asking import confirm
    from gpucourse.ui.views.destroy_preview import ending_runs

    session.console.show(ending_runs(runs))
    if request.dry_run:
        return
    names, command = ", ".join(run.id for run in runs), request.command
    reason = f"nodes of {runs[0].stack} will be removed or rebuilt, and run {names} is still on them"
    if not confirm(session, "Stop these runs and change the lab?", yes=yes, command=command, reason=reason):
        raise Interrupted("nothing was changed", hint=f"gpucourse logs {runs[0].id} -f follows it until it ends\n{command}")


def _agree_to_costs(session: Session, request: DeployRequest, proposal: PricedProposal, *, yes: bool) -> None:
    """Show the costs, and ask for confirmation. Raises UsageError if they exceed the budget, and Interrupted if the person
    declines."""
    from gpucourse.cli.asking import confirm
    from gpucourse.ui.views.cloud import quote

    command = request.command
    if proposal.matters:
        session.console.show(quote(proposal))
    proposal.budget.check(proposal.usd_until_end, over_budget=request.over_budget, command=command)
    question = "Build this?" if any(plan.creates for plan in proposal.plans) else "Change the lab like this?"
    if proposal.matters and not confirm(session, question, yes=yes, command=command):
        raise Interrupted(f"nothing was {'built, so nothing costs money' if proposal.fresh else 'changed'}", hint=command)


def _show_built(session: Session, result: BuildResult, prices: QuoteList | None, *, ask: bool) -> None:
    """Show every lab that was built. If some were not built, raise the most serious of their errors, which decides the exit
    code."""
    from gpucourse.cli.ssh_include import offer_line
    from gpucourse.ui.views.deployed import deploy_result

    context, console = session.context, session.console
    if prices is None:  # there is only one lab
        console.document(OneBuiltLab.build(result.labs[0]))
    else:
        document = BuiltLabs.build(prices, labs=result.labs)
        if result.errors:
            document.error = describe_errors(result.errors)
        console.document(document)
    for lab in result.labs:
        ssh_config = context.paths.stack(lab.deployment.stack).ssh_config
        console.show(deploy_result(lab, ssh_config, session.find_step(lab.deployment.module), whole=console.verbose))
    if result.labs:
        offer_line(session, result.labs[0].deployment.module, ask=ask)
    session.fail(result.errors)


def _make_quote_list(proposal: PricedProposal) -> QuoteList:
    budget = proposal.budget
    return QuoteList(
        quotes=[
            QuoteDocument.build(
                plan,
                plan.deployment.cloud,
                plan.deployment,
                plan.choice,
                title=plan.choice.module.title,
                nodes=plan.deployment.nodes_wanted,
                usual_hours=plan.choice.need.hours,
                usd_per_hour=f"{plan.per_hour:.4f}",
                usd_to_the_end=f"{plan.usd_until_end:.2f}",
                usd_usually=f"{plan.usd_usually:.2f}",
                lines=[
                    QuoteLine.build(charge.rate, what=charge.what, kind=charge.kind, usd_per_hour=f"{charge.per_hour:.4f}")
                    for charge in plan.charges
                ],
            )
            for plan in proposal.plans
        ],
        later=[choice.gpu for choice in proposal.later],
        notes=proposal.notes,
        findings=proposal.findings,
        budget_usd=str(budget.budget) if budget.budget is not None else None,
        spent_usd=f"{budget.spent:.4f}",
        reserved_usd=f"{budget.reserved:.4f}",
        left_usd=f"{budget.remaining:.4f}" if budget.remaining is not None else None,
    )
