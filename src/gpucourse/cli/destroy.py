"""destroy: a lab goes, provably."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from gpucourse.cli import complete
from gpucourse.cli.flags import JsonFlag, YesFlag
from gpucourse.cli.session import current
from gpucourse.errors import ExitCode, GpucourseError, UsageError


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


def _worst(errors: list[GpucourseError]) -> int:
    """Show all errors but the worst, and raise that one: it decides the exit code."""
    if not errors:
        return ExitCode.DONE
    *others, worst = sorted(errors, key=lambda error: error.exit_code)
    for error in others:
        current().face.error(error)
    raise worst


COMMANDS = {"destroy": destroy}
