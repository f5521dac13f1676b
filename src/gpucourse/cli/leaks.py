"""The command `leaks`: lists the course's resources in an AWS account, and removes those that belong to no recorded lab."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import typer

from gpucourse.cli.output import JsonDocument
from gpucourse.cli.session import Session
from gpucourse.errors import Interrupted, LeftoverError
from gpucourse.model.cloud import CloudResource
from gpucourse.model.deployment import Receipt


@dataclass(frozen=True, kw_only=True)
class ExplainedResource(CloudResource):
    """A resource in the account that has the course's tags. `stack` is the lab that it belongs to, if there is one."""

    explained_by: Literal["standing", "another's", "unknown", "leak"]
    stack: str


class Leaks(JsonDocument):
    """The output of `leaks`. `unasked` says why regions that were not searched may also have resources."""

    account: str
    regions: list[str]
    unasked: str
    usd_per_hour: Decimal | None
    things: list[ExplainedResource]


class Cleanup(JsonDocument):
    """The output of `leaks --clean`: the receipts of what was removed, and the resources that remain."""

    receipts: list[Receipt]
    left: list[CloudResource]


def leaks(
    session: Session,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the resources that belong to no recorded lab.")] = False,
    everyone: Annotated[bool, typer.Option("--everyone", help="Include the labs of others in this account.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation.")] = False,
) -> None:
    """List the resources in your AWS account that have the course's tag."""
    from gpucourse.labs.aws import leaks as act
    from gpucourse.ui.views import leaks as views

    context, console = session.look(with_note=True), session.console
    with console.watch() as live:
        holdings = act.scan_account(context.watched_by(live), everyone=everyone)
    if not clean or not holdings.leaks:
        things = [
            ExplainedResource(**vars(thing.resource), explained_by=thing.state, stack=thing.stack) for thing in holdings.things
        ]
        session.present(views.holdings(holdings), Leaks.build(holdings, things=things))
        _judge(holdings.possible_leaks)
        return
    console.show(views.holdings(holdings, clean=True))
    from gpucourse.cli.asking import confirm

    if not confirm(session, "Remove these for good?", yes=yes, command="gpucourse leaks --clean"):
        raise Interrupted("nothing was removed")
    with console.watch() as live:
        receipts, leftovers = act.clean(session.context.watched_by(live), holdings, everyone=everyone)
    session.present(
        views.clean_result(len(holdings.leaks) - len(leftovers), leftovers), Cleanup(receipts=receipts, left=leftovers)
    )
    _judge(leftovers)


def _judge(leftovers: list[CloudResource]) -> None:
    """Raise LeftoverError if something may still be billed."""
    from gpucourse.ui.text import format_count

    visible = sum(resource.seen for resource in leftovers)
    if visible:
        verb, pronoun = ("is", "it") if visible == 1 else ("are", "them")
        raise LeftoverError(
            f"{format_count(visible, 'course resource')} {verb} in the account, and no recorded lab accounts for {pronoun}",
            hint="gpucourse leaks --clean removes them",
        )
    if leftovers:
        kinds = ", ".join(sorted({resource.kind for resource in leftovers}))
        raise LeftoverError(
            f"not everything could be checked ({kinds}), so something may be left",
            hint="the permissions it needs: gpucourse doctor --policy",
        )
