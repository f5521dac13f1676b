"""The command `leaks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, Interrupted, LeftoverError

if TYPE_CHECKING:
    from gpucourse.labs.aws.leaks import LeakScan
    from gpucourse.model.cloud import CloudResource


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
        context.watch = live
        held = act.scan_account(context, everyone=everyone)
    if not clean or not held.leaks:
        if json:
            console.document(_document(held))
        console.show(views.holdings(held))
        return _verdict(held.possible_leaks)
    console.show(views.holdings(held, clean=True))
    from gpucourse.cli.confirm import confirm

    if not confirm(session, "Remove these for good?", yes=yes, command="gpucourse leaks --clean"):
        raise Interrupted("nothing was removed")
    with console.watch() as live:
        context.watch = live
        receipts, left = act.clean(context, held, everyone=everyone)
    if json:
        from gpucourse.cli.documents.describe import describe_receipt

        console.document({"receipts": [describe_receipt(receipt) for receipt in receipts], "left": left})
    console.show(views.clean_result(len(held.leaks) - len(left), left))
    return _verdict(left)


def _document(held: LeakScan) -> dict[str, object]:
    things = [vars(thing.resource) | {"explained_by": thing.state, "stack": thing.stack} for thing in held.things]
    return {
        "account": held.account,
        "regions": held.regions,
        "unasked": held.unasked,
        "usd_per_hour": held.usd_per_hour,
        "things": things,
    }


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
