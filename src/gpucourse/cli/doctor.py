"""The command `doctor`: finds everything that would stop the course."""

from __future__ import annotations

from decimal import Decimal
from json import loads as parse
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import YesFlag, choice_option, name_gpus, name_two_gpus, split_list
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import ExitCode, UsageError
from gpucourse.labs.results import ModulePrice, ShortQuota
from gpucourse.labs.target import list_targets
from gpucourse.model.cloud import Finding, QuotaRequest

if TYPE_CHECKING:
    from gpucourse.labs.request import PreflightRequest
    from gpucourse.labs.target import HasAccount, HasLogin


class Examination(JsonDocument):
    """The output of `doctor` for this computer or for hosts."""

    findings: list[Finding]


class ExaminedAccount(JsonDocument):
    """The output of `doctor --target aws`: the findings, and the price of each lab."""

    target: str
    region: str
    market: str
    findings: list[Finding]
    prices: list[ModulePrice]
    sources: list[str]
    usd: Decimal


class Quotas(JsonDocument):
    """The output of `doctor --request-quota`: the quotas that are too small, and the increases that were requested."""

    quotas: list[ShortQuota]
    requests: list[QuotaRequest]


class Policy(JsonDocument):
    """The output of `doctor --policy`: the IAM policy that the course needs."""

    policy: dict[str, Any]


class Setup(JsonDocument):
    """The output of `doctor --setup`: a CloudFormation template."""

    setup: dict[str, Any]


def doctor(
    session: Session,
    target: Annotated[
        str | None,
        choice_option("--target", "What to check: this machine, your AWS account, or a Slurm cluster.", list_targets()),
    ] = None,
    module: Annotated[
        str | None, typer.Option("--module", help="Only what this module needs.", autocompletion=complete.modules)
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="An AWS region other than the one in gpucourse.yaml.")] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", help=f"On AWS: the GPU, instead of the course's choice: {name_gpus()}; or several: {name_two_gpus()}"
        ),
    ] = None,
    nodes: Annotated[int | None, typer.Option("--nodes", help="On AWS: a different number of nodes, with --module.")] = None,
    spot: Annotated[bool | None, typer.Option("--spot/--no-spot", help="Spot instances, or on-demand ones.")] = None,
    ssh_cidr: Annotated[
        str, typer.Option("--ssh-cidr", help="Your address, such as 203.0.113.7/32 (default: looked up online).")
    ] = "",
    login: Annotated[str, typer.Option("--login", help="A Slurm cluster: its login node, as ssh accepts it: me@cluster")] = "",
    cluster: Annotated[str, typer.Option("--cluster", help="A Slurm cluster by its name in gpucourse.yaml.")] = "",
    policy: Annotated[bool, typer.Option("--policy", help="Print the IAM policy that the course needs, and stop.")] = False,
    setup: Annotated[
        bool, typer.Option("--setup", help="Print the file with which an administrator sets up an AWS account, and stop.")
    ] = False,
    request_quota: Annotated[
        bool, typer.Option("--request-quota", help="Ask AWS to raise the quotas that are too small.")
    ] = False,
    yes: YesFlag = False,
) -> int:
    """Show what would stop the course, and how to fix it."""
    from gpucourse.labs.request import PreflightRequest
    from gpucourse.labs.target import HasAccount, HasLogin, find_target, load_targets
    from gpucourse.ui.tables import Code, View

    accounts = [target_class for target_class in load_targets() if isinstance(target_class, HasAccount)]
    if policy or setup:
        place = region or session.look().settings.region
        text = accounts[0].policy(place) if policy else accounts[0].setup(place)
        content = parse(text)
        document = Policy(policy=content) if policy else Setup(setup=content)
        session.present(View(blocks=(Code(text.rstrip("\n")),)), document)
        return ExitCode.DONE
    selected = find_target(target or (accounts[0].name if request_quota else session.look().settings.target))
    if (login or cluster) and not isinstance(selected, HasLogin):
        raise UsageError(
            "--login and --cluster: only with --target slurm", hint="gpucourse doctor --target slurm --login me@cluster"
        )
    if not isinstance(selected, HasAccount):
        option_values = {"--region": region, "--gpu": gpu, "--nodes": nodes, "--spot": spot, "--ssh-cidr": ssh_cidr or None}
        if flags := [flag for flag, value in option_values.items() if value is not None] + ["--request-quota"] * request_quota:
            command = f"gpucourse doctor --target aws {' '.join(flags)}"
            raise UsageError(f"{' and '.join(flags)}: only with --target aws", hint=command)
        if isinstance(selected, HasLogin):
            return _login(session, selected, module, login, cluster)
        return _machine(session, selected.name, module)
    request = PreflightRequest(
        module=module,
        gpu=tuple(dict.fromkeys(split_list((gpu or "").lower()))),
        nodes=nodes,
        region=region,
        spot=spot,
        ssh_cidr=ssh_cidr,
    )
    if request_quota:
        return _request(session, selected, request, yes=yes)
    return _account(session, selected, request)


def _machine(session: Session, target: str, module: str | None) -> int:
    from gpucourse.labs.doctor import doctor as act
    from gpucourse.ui.views.doctor import machine

    findings = act(session.look(), target, module)
    session.present(machine(findings, session.find_step(module or ""), module or ""), Examination(findings=findings))
    return ExitCode.MISSING if any(finding.state == "missing" for finding in findings) else ExitCode.DONE


def _login(session: Session, target: HasLogin, module: str | None, login: str, cluster: str) -> int:
    from gpucourse.labs.request import DeployRequest
    from gpucourse.ui.views.cluster import login_report

    request = DeployRequest(module=module or "3", target=target.name, login=login, cluster=cluster)
    with session.console.watch() as live:
        report = target.look(session.context.watched_by(live), request)
    session.present(login_report(report), report)
    return ExitCode.MISSING if any(finding.state == "missing" for finding in report.findings) else ExitCode.DONE


def _account(session: Session, target: HasAccount, request: PreflightRequest) -> int:
    from gpucourse.ui.views.doctor import account

    with session.console.watch() as live:
        examined = target.examine(session.context.watched_by(live), request)
    session.present(account(examined, session.find_step()), ExaminedAccount.build(examined, target=target.name))
    return ExitCode.MISSING if examined.missing or examined.blind else ExitCode.DONE


def _request(session: Session, target: HasAccount, request: PreflightRequest, *, yes: bool) -> int:
    from gpucourse.cli.asking import confirm
    from gpucourse.ui.views.doctor import quota_requests, quotas

    context = session.context
    with session.console.watch() as live:
        short = target.short_quotas(context.watched_by(live), request)
    quota_gaps = [short_quota for short_quota in short if short_quota.can_be_requested]
    session.console.show(quotas(short, request.region or context.settings.region))
    quota_text = f"{len(quota_gaps)} higher quota{'s' if len(quota_gaps) > 1 else ''}"
    command = target.request_command(request)
    command += " --spot" if request.spot else ""
    agreed = bool(quota_gaps) and confirm(session, f"Ask AWS for {quota_text}? It costs nothing.", yes=yes, command=command)
    requests = target.request_quotas(context, request, quota_gaps) if agreed else []
    session.console.document(Quotas(quotas=short, requests=requests))
    if requests:
        session.console.show(quota_requests(requests))
    elif quota_gaps:
        session.console.note("Nothing was requested.")
    return ExitCode.MISSING if any(short_quota.quota.enough is None for short_quota in short) else ExitCode.DONE
