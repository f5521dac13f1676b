"""deploy: a lab stands up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag, ModuleArgument, YesFlag, any_gpu, parse_seconds, two_gpus
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpucourse.cli.session import Session
    from gpucourse.labs.deploy import Wish


def deploy(
    ctx: typer.Context,
    module: ModuleArgument,
    nodes: Annotated[int | None, typer.Option("--nodes", help="How many nodes.", show_default=False)] = None,
    target: Annotated[
        Literal["local", "aws", "hosts"] | None,
        typer.Option("--target", help="Where: simulated nodes here, your AWS account, your own hosts.", show_default=False),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option("--link", help="Simulated nodes: a slower network: 1gbit, or 1gbit,2ms; none.", show_default=False),
    ] = None,
    unpack_slurm: Annotated[
        bool, typer.Option("--unpack-slurm", help="Simulated nodes: fetch Slurm for them alone, installing nothing.")
    ] = False,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help=f"On AWS: {any_gpu()}; several side by side: {two_gpus()}", show_default=False),
    ] = None,
    spot: Annotated[
        bool | None,
        typer.Option("--spot/--no-spot", help="On AWS: spot instances, cheaper, taken back at will.", show_default=False),
    ] = None,
    region: Annotated[str | None, typer.Option("--region", help="On AWS: where, as us-east-2.", show_default=False)] = None,
    ttl: Annotated[str | None, typer.Option("--ttl", help="On AWS: it ends itself after: 4h.", show_default=False)] = None,
    ssh_cidr: Annotated[str, typer.Option("--ssh-cidr", help="On AWS: the one address that may log in: 203.0.113.7/32")] = "",
    hosts: Annotated[
        str | None,
        typer.Option("--hosts", help="Your own machines: me@gpu1,me@gpu2:2222", show_default=False),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="On hosts: the private key that opens them.", show_default=False),
    ] = None,
    trust: Annotated[
        list[str] | None,
        typer.Option("--trust", help="On hosts: a host key's fingerprint that is right: SHA256:...", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be built, and stop.")] = False,
    yes: YesFlag = False,
    over_budget: Annotated[bool, typer.Option("--yes-over-budget", help="On AWS: build it even above the budget.")] = False,
    json: JsonFlag = False,
) -> int:
    """Stand up the lab of a module; run again, it heals what died."""
    from gpucourse.labs.deploy import Wish

    session = session_of(ctx)
    where = target or ("hosts" if hosts else session.context.settings.target)
    wish = Wish(
        module=module,
        nodes=nodes,
        target=where,
        dry_run=dry_run,
        link=link,
        unpack_slurm=unpack_slurm,
        gpu=tuple(filter(None, (gpu or "").replace(" ", "").split(","))),
        spot=spot,
        region=region,
        ttl_s=parse_seconds(ttl, f"gpucourse deploy {module} --target aws --ttl 4h", flag="--ttl"),
        ssh_cidr=ssh_cidr,
        over_budget=over_budget,
    )
    if link and where != "local":
        raise UsageError("--link: only for simulated nodes", hint=f"gpucourse deploy {module} --target local --link {link}")
    if unpack_slurm and (where != "local" or dry_run):
        why = "--dry-run fetches nothing" if where == "local" else "only for simulated nodes"
        raise UsageError(f"--unpack-slurm: {why}", hint=f"gpucourse deploy {module} --target local --unpack-slurm")
    if where == "aws":
        from gpucourse.cli.deploy_aws import deploy_on_aws

        _only_on_hosts(module, {"--hosts": hosts, "--key": key, "--trust": trust})
        return deploy_on_aws(session, wish, yes=yes, json=json)
    _only_in_the_cloud(wish)
    if where == "hosts":
        from gpucourse.cli.deploy_hosts import deploy_on_hosts, doors

        return deploy_on_hosts(session, wish, doors(hosts, key, trust), json=json)
    _only_on_hosts(module, {"--hosts": hosts, "--key": key, "--trust": trust})
    return _deploy_here(session, wish, json=json)


def _deploy_here(session: Session, wish: Wish, *, json: bool) -> int:
    from gpucourse.labs.deploy import deploy as act
    from gpucourse.ui.views.lab import deploy_plan, deployed

    context = session.context
    session.face.mode(wish.target or context.settings.target)
    with session.face.watch() as live:
        context.watch = live
        result = act(context, wish)
    if json:
        session.face.document(result)
    if wish.dry_run:
        session.face.show(deploy_plan(result))
    else:
        first = context.catalog.module(wish.module).exercises[0].id
        session.face.show(deployed(result, context.paths.stack(result.deployment.stack).ssh_config, first))
    return ExitCode.DONE


def _only_on_hosts(module: str, typed: dict[str, object]) -> None:
    """Raises UsageError for what has no meaning on machines that this program makes itself."""
    named = [flag for flag, given in typed.items() if given]
    if named:
        raise UsageError(
            f"{', '.join(named)}: only for machines that exist already", hint=f"gpucourse deploy {module} --target hosts"
        )


def _only_in_the_cloud(wish: Wish) -> None:
    """Raises UsageError for what has no meaning on machines that cost nothing."""
    typed = {
        "--gpu": wish.gpu,
        "--spot": wish.spot is not None,
        "--region": wish.region,
        "--ttl": wish.ttl_s is not None,
        "--ssh-cidr": wish.ssh_cidr,
        "--yes-over-budget": wish.over_budget,
    }
    named = [flag for flag, given in typed.items() if given]
    if named:
        raise UsageError(
            f"{', '.join(named)}: only for a lab on AWS, and this one would cost nothing",
            hint=f"gpucourse deploy {wish.module} --target aws",
        )
