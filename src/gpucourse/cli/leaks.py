"""The command `leaks`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, Interrupted, LeftoverError
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import Receipt


@dataclass(frozen=True, kw_only=True)
class ExplainedResource(CloudResource):
    """Something that the account holds with the course's tags, and the lab that explains it, if one does."""

    explained_by: Literal["standing", "another's", "unknown", "leak"]
    stack: str


class Leaks(JsonDocument):
    """`leaks`. `unasked`: why other regions may hold something."""

    account: str
    regions: list[str]
    unasked: str
    usd_per_hour: Decimal | None
    things: list[ExplainedResource]


class Cleanup(JsonDocument):
    """`leaks --clean`: what was removed, and what is left."""

    receipts: list[Receipt]
    left: list[CloudResource]


def leaks(
    ctx: typer.Context,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what no lab on record explains.")] = False,
    everyone: Annotated[bool, typer.Option("--everyone", help="Count the labs of others in this account too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
    json: JsonFlag = False,
) -> int:
    """List what your AWS account still has with the course's tag."""
    from gpucourse.labs.aws import leaks as act
    from gpucourse.ui.views import leaks as views

    session = session_of(ctx)
    context, console = session.context, session.console
    with console.watch() as live:
        held = act.scan_account(context.watched_by(live), everyone=everyone)
    if not clean or not held.leaks:
        if json:
            things = [
                ExplainedResource(**vars(thing.resource), explained_by=thing.state, stack=thing.stack) for thing in held.things
            ]
            console.document(Leaks.of(held, things=things))
        console.show(views.holdings(held))
        return _verdict(held.possible_leaks)
    console.show(views.holdings(held, clean=True))
    from gpucourse.cli.asking import confirm

    if not confirm(session, "Remove these for good?", yes=yes, command="gpucourse leaks --clean"):
        raise Interrupted("nothing was removed")
    with console.watch() as live:
        receipts, left = act.clean(context.watched_by(live), held, everyone=everyone)
    if json:
        console.document(Cleanup(receipts=receipts, left=left))
    console.show(views.clean_result(len(held.leaks) - len(left), left))
    return _verdict(left)


def _verdict(left: list[CloudResource]) -> int:
    """Return exit code 0 if nothing is left. Raises LeftoverError if something may still be billed."""
    if not left:
        return ExitCode.DONE
    seen = [resource for resource in left if resource.seen]
    if not seen:
        kinds = ", ".join(sorted({resource.kind for resource in left}))
        raise LeftoverError(
            f"not everything could be checked ({kinds}), so something may be left",
            hint="the permissions it needs: gpucourse doctor --policy",
        )
    from gpucourse.ui.text import format_count

    raise LeftoverError(
        f"{format_count(len(seen), 'thing')} of the course {'is' if len(seen) == 1 else 'are'} in the account, "
        f"and no lab on record explains {'it' if len(seen) == 1 else 'them'}",
        hint="gpucourse leaks --clean removes them",
    )
