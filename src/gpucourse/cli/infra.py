"""Commands about labs: deploy, status, ssh, destroy, doctor."""

from __future__ import annotations

import os
import shutil
from typing import Annotated, Literal, Optional

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode, GpucourseError, MissingError, UsageError

ModuleArgument = Annotated[str, typer.Argument(help="The number of a module: 3", autocompletion=complete.modules)]

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Simulated nodes cost nothing: nothing is asked.")]


def deploy(
    module: ModuleArgument,
    nodes: Annotated[Optional[int], typer.Option("--nodes", help="How many nodes.", show_default=False)] = None,  # noqa: UP045
    target: Annotated[Literal["local"], typer.Option("--target", help="Where: local is simulated nodes here.")] = "local",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be built, and stop.")] = False,
    _yes: YesFlag = False,
    json: JsonFlag = False,
) -> int:
    """Stand up the lab of a module; run again, it heals what died."""
    from gpucourse.actions.deploy import deploy as act
    from gpucourse.ui.views.lab import deploy_plan, deployed

    session = current()
    context = session.context
    session.face.mode(target)
    with session.face.watch() as live:
        context.watch = live
        result = act(context, module, nodes=nodes, dry_run=dry_run)
    if json:
        session.face.document(result)
    if dry_run:
        session.face.show(deploy_plan(result))
    else:
        first = context.catalog.module(module).exercises[0].id
        session.face.show(deployed(result, context.paths.stack(result.deployment.stack).ssh_config, first))
    return ExitCode.DONE


def status(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every two seconds, until Ctrl-C.")] = False,
    json: JsonFlag = False,
) -> int:
    """Every lab and node, as it is right now."""
    from gpucourse.actions.status import status as act
    from gpucourse.ui.views.lab import status as view

    session = current()
    while True:
        found = act(session.context)
        if json:
            session.face.document({"stacks": [_stack_document(one) for one in found]})
        if watch and session.face.moving(session.face.out):
            session.face.out.write("\x1b[H\x1b[J")  # from the top of the screen, so that it changes in place
        session.face.show(view(found))
        if not watch:
            return ExitCode.DONE
        session.context.stop.wait(2.0)


def ssh(
    module: ModuleArgument,
    node: Annotated[str, typer.Option("--node", help="Which node: 1 or node1.")] = "0",
    command: Annotated[Optional[list[str]], typer.Argument(help="After --: one command instead of a shell.")] = None,  # noqa: UP045
) -> int:
    """A shell on a node, or one command."""
    from gpucourse.actions.connect import connection

    session = current()
    client = shutil.which("ssh")
    if client is None:
        raise MissingError("OpenSSH's client is not installed", hint="install it: apt install openssh-client")
    config, name = connection(session.context, module, node)
    # From here on this process is ssh: its terminal, its signals, its exit code.
    os.execv(client, [client, "-F", str(config), name, *(command or [])])


def destroy(
    module: Annotated[
        Optional[str], typer.Argument(help="The number of a module; or --all.", autocompletion=complete.modules)  # noqa: UP045
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every lab of this workspace.")] = False,
    _yes: YesFlag = False,
    discard: Annotated[bool, typer.Option("--discard", help="Give up outputs that are not home yet.")] = False,
    json: JsonFlag = False,
) -> int:
    """Bring outputs home, take the lab down, and prove that nothing is left."""
    from gpucourse.actions.destroy import destroy as act
    from gpucourse.ui.views.lab import destroyed

    if (module is None) == (not everything):
        raise UsageError("name one module, or all of them", hint="gpucourse destroy 3, or gpucourse destroy --all")
    session = current()
    context = session.context
    session.face.mode(context.settings.target)
    with session.face.watch() as live:
        context.watch = live
        result = act(context, None if module is None else [module], discard=discard)
    if json and not result.errors:
        session.face.document({"receipts": result.receipts})
    if result.receipts or not result.errors:
        session.face.show(destroyed(result.receipts, context.paths.receipts))
    return _worst(result.errors)


def doctor(json: JsonFlag = False) -> int:
    """Everything that would stop the course on this machine, each with the command that mends it."""
    from gpucourse.actions.doctor import doctor as act
    from gpucourse.ui.views.lab import doctor as view

    session = current()
    found = act(session.context)
    if json:
        session.face.document({"findings": found})
    session.face.show(view(found))
    return ExitCode.MISSING if any(one.state == "missing" for one in found) else ExitCode.DONE


def _stack_document(one: object) -> dict[str, object]:
    return dict(vars(one)) | {"healthy": getattr(one, "healthy", False)}


def _worst(errors: list[GpucourseError]) -> int:
    """Show all errors but the worst, and raise that one: it decides the exit code."""
    if not errors:
        return ExitCode.DONE
    *others, worst = sorted(errors, key=lambda error: error.exit_code)
    for error in others:
        current().face.error(error)
    raise worst


COMMANDS = {"deploy": deploy, "status": status, "ssh": ssh, "destroy": destroy, "doctor": doctor}
