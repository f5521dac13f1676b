"""The screen of `status`: every lab with its nodes, in their current state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.model.deployment import NodeHealth
from gpucourse.model.node import SIMULATED
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Cell, Column, Paragraph, Style, Table, View, facts, number_column, table, text_column
from gpucourse.ui.text import age
from gpucourse.ui.views.words import count_nodes
from gpucourse.units import seconds_since

if TYPE_CHECKING:
    from gpucourse.labs.status import StackStatus

_PHASES: dict[str, Style] = {"ready": "good", "failed": "bad", "creating": "warn", "destroying": "warn"}


def status(stacks: Sequence[StackStatus], *, unreadable: int = 0) -> View:
    """Show every stack with its nodes, in their current state. `unreadable` is the number of damaged records of stacks."""
    if not stacks and unreadable:
        return View(blocks=[Paragraph("The record of a lab cannot be read, so it is unknown what is deployed.")])
    if not stacks:
        return View(blocks=[Paragraph("Nothing is deployed.")], next="gpucourse next")
    labs = [stack.deployment for stack in stacks]
    columns: list[Column | str] = [
        "stack",
        text_column("module"),
        "state",
        number_column("nodes"),
        number_column("age"),
        "running",
    ]
    blocks: list[Block] = [
        table(columns, map(_stack, stacks)),
        facts(((lab.stack, Cell(lab.lacks, "warn")) for lab in labs), title="What is missing"),
        facts(((lab.stack, lab.link) for lab in labs), title="Networks with limited speed"),
        facts(((lab.stack, Cell(lab.error or "", "bad")) for lab in labs), title="What went wrong"),
        _nodes(stacks),
        facts((wait for stack in stacks for wait in stack.waits.items()), title="Runs that wait in a queue"),
    ]
    for stack in stacks:
        if stack.cloud:
            from gpucourse.ui.views.outlook import outlook  # only the cloud needs it

            blocks.append(outlook(stack.deployment, stack.cloud))
    footer = list(dict.fromkeys(repair for stack in stacks if not stack.healthy and (repair := _find_repair(stack))))
    return View(
        blocks=blocks,
        footer=footer,
        mode=SIMULATED if any(stack.deployment.is_simulated for stack in stacks) else "",
        next="" if footer else "gpucourse next",
    )


def _find_repair(status: StackStatus) -> str:
    """Return what to type for a lab that is not healthy. Return an empty string if the state of the lab is not known."""
    deployment = status.deployment
    if status.cloud and status.cloud.unknown:
        return ""
    if deployment.phase == "destroying":
        return f"Take down what is left of it: gpucourse destroy {deployment.module}"
    if status.cloud and status.cloud.stopped:
        return f"Start it again: gpucourse start {deployment.module}"
    return f"Repair it: gpucourse deploy {deployment.module}{deployment.flag}"


def _state(status: StackStatus) -> Cell:
    phase = status.deployment.phase
    if status.healthy or phase != "ready":
        return Cell(phase, _PHASES[phase])
    if status.cloud and status.cloud.unknown:
        return Cell("unknown", "warn")
    return Cell("stopped", "warn") if status.cloud and status.cloud.stopped else Cell("unhealthy", "bad")


def _stack(status: StackStatus) -> tuple[str | Cell, ...]:
    deployment = status.deployment
    return (
        deployment.stack,
        f"{deployment.module} {deployment.title}".strip(),
        _state(status),
        _count_nodes(status),
        age(seconds_since(deployment.created)),
        ", ".join(record.id for record in status.active_runs) or Cell("none", "dim"),
    )


def _count_nodes(status: StackStatus) -> Cell:
    """Return how many nodes of a lab are healthy: `2`, `3 + head`, or `1 of 2` if one is not."""
    well, count = sum(node.healthy for node in status.nodes), len(status.nodes)
    total = count_nodes(count, status.deployment)
    return Cell(total) if well == count else Cell(f"{well} of {count}", "bad")


def _nodes(stacks: Sequence[StackStatus]) -> Table:
    rows = []
    for status in stacks:
        inventory = status.deployment.inventory
        for health in status.nodes:
            node = inventory.find_node(health.node) if inventory else None
            address = node.login if node else ""
            mark = _mark(health, asleep=bool(status.cloud and status.cloud.stopped and health.node in status.cloud.instances))
            rows.append((health.node, status.deployment.stack, node.role if node else "", address, mark, health.detail))
    columns: list[Column | str] = ["node", "stack", Column("role", spare=True), Column("address", spare=True), "health"]
    return table([*columns, text_column("seen")], rows)


def _mark(health: NodeHealth, *, asleep: bool) -> Cell:
    """Return the health of a node. `asleep`: the node exists, but its lab was stopped on purpose."""
    if health.healthy:
        return Cell(f"{UNICODE.good} healthy", "good")
    if not health.known:
        return Cell(f"{UNICODE.absent} unknown", "warn")
    if asleep:
        return Cell(f"{UNICODE.absent} stopped", "warn")
    return Cell(f"{UNICODE.bad} unhealthy", "bad")
