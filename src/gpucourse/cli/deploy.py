"""deploy: a lab stands up."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

import typer

from gpucourse.cli.flags import JsonFlag, ModuleArgument, YesFlag
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode


def deploy(
    module: ModuleArgument,
    nodes: Annotated[Optional[int], typer.Option("--nodes", help="How many nodes.", show_default=False)] = None,  # noqa: UP045
    target: Annotated[
        Optional[Literal["local", "aws"]],  # noqa: UP045
        typer.Option("--target", help="Where: local is simulated nodes here, aws your account.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be built, and stop.")] = False,
    _yes: YesFlag = False,
    json: JsonFlag = False,
) -> int:
    """Stand up the lab of a module; run again, it heals what died."""
    from gpucourse.actions.deploy import Wish
    from gpucourse.actions.deploy import deploy as act
    from gpucourse.ui.views.lab import deploy_plan, deployed

    session = current()
    context = session.context
    session.face.mode(target or context.settings.target)
    with session.face.watch() as live:
        context.watch = live
        result = act(context, Wish(module=module, nodes=nodes, target=target, dry_run=dry_run))
    if json:
        session.face.document(result)
    if dry_run:
        session.face.show(deploy_plan(result))
    else:
        first = context.catalog.module(module).exercises[0].id
        session.face.show(deployed(result, context.paths.stack(result.deployment.stack).ssh_config, first))
    return ExitCode.DONE


COMMANDS = {"deploy": deploy}
