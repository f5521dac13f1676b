"""doctor: everything that would stop the course."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag, YesFlag, any_gpu, two_gpus
from gpucourse.cli.session import Session, session_of
from gpucourse.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpucourse.labs.aws.doctor import Look


def doctor(
    ctx: typer.Context,
    target: Annotated[
        Literal["local", "aws"] | None,
        typer.Option("--target", help="What to look at: this machine, or your AWS account.", show_default=False),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option("--module", help="Only what this module needs.", autocompletion=complete.modules, show_default=False),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", help="Another region of AWS than the one in gpucourse.yaml.", show_default=False),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            help=f"On AWS: another GPU than the course's own choice: {any_gpu()}; or several: {two_gpus()}",
            show_default=False,
        ),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", help="On AWS: another number of nodes, with --module.", show_default=False),
    ] = None,
    spot: Annotated[
        bool | None,
        typer.Option("--spot/--no-spot", help="Spot instances, or on-demand ones.", show_default=False),
    ] = None,
    ssh_cidr: Annotated[
        str, typer.Option("--ssh-cidr", help="Your address, as 203.0.113.7/32; asked of the internet by default.")
    ] = "",
    policy: Annotated[bool, typer.Option("--policy", help="Print the IAM policy that the course needs, and stop.")] = False,
    request_quota: Annotated[
        bool, typer.Option("--request-quota", help="Ask AWS to raise the quotas that are too small.")
    ] = False,
    yes: YesFlag = False,
    json: JsonFlag = False,
) -> int:
    """Everything that would stop the course, each with the command that mends it."""
    session = session_of(ctx)
    if policy:
        return _policy(session, json=json)
    on_aws = (target or ("aws" if request_quota else session.context.settings.target)) == "aws"
    if not on_aws:
        typed = {"region": region, "gpu": gpu, "nodes": nodes, "spot": spot}
        given = {name: value is not None for name, value in typed.items()}
        _only_on_aws(**given, ssh_cidr=bool(ssh_cidr), request_quota=request_quota)
        return _machine(session, module, json=json)
    from gpucourse.labs.aws.doctor import Look

    look = Look(
        module=module,
        gpu=tuple(dict.fromkeys(filter(None, (gpu or "").lower().replace(" ", "").split(",")))),
        nodes=nodes,
        region=region,
        spot=spot,
        ssh_cidr=ssh_cidr,
    )
    return _request(session, look, yes=yes, json=json) if request_quota else _account(session, look, json=json)


def _machine(session: Session, module: str | None, *, json: bool) -> int:
    from gpucourse.labs.doctor import doctor as act
    from gpucourse.ui.views.doctor import machine

    if module is not None:
        session.context.catalog.module(module)
    found = act(session.context)
    if json:
        session.face.document({"findings": found})
    session.face.show(machine(found))
    return ExitCode.MISSING if any(one.state == "missing" for one in found) else ExitCode.DONE


def _account(session: Session, look: Look, *, json: bool) -> int:
    from gpucourse.labs.aws.doctor import doctor as act
    from gpucourse.ui.views.doctor import account

    with session.face.watch() as live:
        session.context.watch = live
        examined = act(session.context, look)
    if json:
        session.face.document({"target": "aws", **vars(examined), "usd": examined.usd})
    session.face.show(account(examined))
    return ExitCode.MISSING if examined.missing or examined.blind else ExitCode.DONE


def _request(session: Session, look: Look, *, yes: bool, json: bool) -> int:
    from gpucourse.cli.confirm import confirmed
    from gpucourse.labs.aws.doctor import request_quotas, short_quotas
    from gpucourse.labs.aws.environment import request_command
    from gpucourse.ui.views.doctor import quotas, requested

    context = session.context
    with session.face.watch() as live:
        context.watch = live
        short = short_quotas(context, look)
    asking = [one for one in short if one.to_ask]
    session.face.show(quotas(short, look.region or context.settings.region))
    many = f"{len(asking)} higher quota{'s' if len(asking) > 1 else ''}"
    again = request_command(look.module, region=look.region, gpu=look.gpu, nodes=look.nodes)
    again += " --spot" if look.spot else ""
    agreed = bool(asking) and confirmed(session, f"Ask AWS for {many}? It costs nothing.", yes=yes, command=again)
    requests = request_quotas(context, look, asking) if agreed else []
    if json:
        session.face.document({"quotas": short, "requests": requests})
    if requests:
        session.face.show(requested(requests))
    elif asking:
        session.face.note("Nothing was asked.")
    return ExitCode.MISSING if any(one.quota.enough is None for one in short) else ExitCode.DONE


def _policy(session: Session, *, json: bool) -> int:
    import json as document

    from gpucourse.aws.policy import policy_text
    from gpucourse.ui.tables import Code, View

    if json:
        session.face.document({"policy": document.loads(policy_text())})
    session.face.show(View(parts=(Code(policy_text().rstrip("\n")),)))
    return ExitCode.DONE


def _only_on_aws(**given: bool) -> None:
    flags = [f"--{name.replace('_', '-')}" for name, there in given.items() if there]
    if flags:
        raise UsageError(
            f"{' and '.join(flags)}: only a look at an AWS account knows that",
            hint=f"gpucourse doctor --target aws {' '.join(flags)}",
        )
