"""The command `status`: shows the current state of every lab and node."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

import typer

from gpucourse.cli.output import JsonDocument, LabDocument, field
from gpucourse.cli.session import Session
from gpucourse.model.cloud import Idle
from gpucourse.model.deployment import NodeHealth


class CloudStatus(JsonDocument):
    """A lab on AWS. `unknown` says why AWS could not be queried. `ended` lists the nodes that have ended, and why."""

    instances: dict[str, str]
    expires: str
    seconds_left: float
    cost_usd: Decimal
    usd_per_hour: Decimal | None
    unknown: str
    stopped: bool
    ended: list[str]
    idle: list[Idle]
    backstop: str


class StackDocument(JsonDocument):
    """The current state of one lab. `active_runs` lists the ids of runs, and `waits` says why some of them wait in a queue.
    `cloud` says what will end a lab on AWS, and what the lab costs."""

    deployment: LabDocument
    healthy: bool
    nodes: list[NodeHealth]
    active_run_ids: list[str] = field(name="active_runs")
    cloud: CloudStatus | None
    waits: dict[str, str]


class StatusDocument(JsonDocument):
    """The output of `status`. Each of `stacks` is a lab."""

    stacks: list[StackDocument]
    warnings: list[str]


def status(
    session: Session,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds (ten on AWS) until Ctrl-C.")] = False,
) -> None:
    """Show the current state of every lab and node."""
    from gpucourse.labs.status import status as act
    from gpucourse.ui.views.status import status as view

    while True:
        # With --watch, no node is contacted: a node's idle agent counts each connection as use of the node.
        status = act(session.look(), ask_nodes=not watch)
        session.console.document(StatusDocument.build(status))
        if watch and session.console.can_redraw(session.console.out):
            session.console.out.write("\x1b[H\x1b[J")  # from the top of the screen, so that it changes in place
        session.console.show(view(status.stacks, unreadable=status.unreadable))
        for warning in status.warnings:
            session.console.warn(warning)
        if not watch:
            return
        session.context.stop.wait(10.0 if any(stack.cloud for stack in status.stacks) else 2.0)
