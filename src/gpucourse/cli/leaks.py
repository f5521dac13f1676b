"""The command `leaks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpucourse.cli.flags import JsonFlag
from gpucourse.cli.session import session_of
from gpucourse.errors import ExitCode, Interrupted, LeftoverError

if TYPE_CHECKING:
    from gpucourse.labs.aws.cleanup.leaks import Holdings
    from gpucourse.model.cloud import Found


def leaks(
    ctx: typer.Context,
    clean: Annotated[bool, typer.Option("--clean", help="Remove what no lab on record explains.")] = False,
    everyone: Annotated[bool, typer.Option("--everyone", help="Count the labs of others in this account too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    json: JsonFlag = False,
) -> int:
    """What your AWS account still holds with the course's tag."""
    from gpucourse.labs.aws.cleanup import leaks as act
    from gpucourse.ui.views import leaks as views

    session = session_of(ctx)
    context, face = session.context, session.face
    with face.watch() as live:
        context.watch = live
        held = act.holdings(context, everyone=everyone)
    if not clean or not held.leaks:
        if json:
            face.document(_document(held))
        face.show(views.holdings(held))
        return _verdict(held.left)
    face.show(views.holdings(held, clean=True))
    from gpucourse.cli.confirm import confirmed

    if not confirmed(session, "Remove these for good?", yes=yes, command="gpucourse leaks --clean"):
        raise Interrupted("nothing was removed")
    with face.watch() as live:
        context.watch = live
        receipts, left = act.clean(context, held, everyone=everyone)
    if json:
        face.document({"receipts": receipts, "left": left})
    face.show(views.cleaned(len(held.leaks) - len(left), left))
    return _verdict(left)


def _document(held: Holdings) -> dict[str, object]:
    things = [vars(one.found) | {"explained_by": one.state, "stack": one.stack} for one in held.things]
    return {
        "account": held.account,
        "regions": held.regions,
        "unasked": held.unasked,
        "usd_per_hour": held.usd_per_hour,
        "things": things,
    }


def _verdict(left: list[Found]) -> int:
    """Raises LeftoverError where something may still be billed."""
    if not left:
        return ExitCode.DONE
    seen = [one for one in left if one.seen]
    if not seen:
        kinds = ", ".join(sorted({one.kind for one in left}))
        raise LeftoverError(
            f"not everything could be looked at ({kinds}), so nobody knows whether something is left",
            hint="the permissions that it takes: gpucourse doctor --policy",
        )
    from gpucourse.ui.text import counted

    raise LeftoverError(
        f"{counted(len(seen), 'thing')} of the course {'is' if len(seen) == 1 else 'are'} in the account, "
        f"and no lab on record explains {'it' if len(seen) == 1 else 'them'}",
        hint="gpucourse leaks --clean removes them",
    )
