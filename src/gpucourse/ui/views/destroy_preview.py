"""The preview of a destroy, before the person agrees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucourse.ui.tables import Column, Items, View, number_column, table, text_column
from gpucourse.ui.text import age, format_count, hourly, usd
from gpucourse.units import seconds_since

if TYPE_CHECKING:
    from gpucourse.labs.results import StackCost
    from gpucourse.model.cloud import CloudResource
    from gpucourse.model.record import RunRecord

_COLLECTED = "will be stopped, and its outputs collected"


def destroy_preview(
    labs: Sequence[StackCost], *, untracked: Sequence[CloudResource] = (), free_labs: int = 0, discard: bool = False
) -> View:
    """Show what a destroy would remove: every lab that costs money, with its costs and runs, and resources that belong to no
    recorded lab."""
    columns: list[Column | str] = [
        "stack",
        text_column("module"),
        number_column("nodes"),
        number_column("age"),
        number_column("costs"),
        number_column("so far"),
    ]
    rows = [
        (
            lab.deployment.stack,
            f"{lab.deployment.module} {lab.deployment.title}".strip(),
            str(lab.deployment.nodes_wanted),
            age(seconds_since(lab.deployment.created)),
            hourly(lab.per_hour),
            usd(lab.spent),
        )
        for lab in labs
    ]
    things = [
        (resource.kind, resource.id if resource.seen else resource.note, resource.region, resource.state)
        for resource in untracked
    ]
    fate = "will be ended" if discard else _COLLECTED
    notes = [f"{_say_unseen(run, lab.deployment.stack)}, {fate}" for lab in labs for run in lab.runs]
    if discard:
        notes.append("outputs that are not collected yet will be lost (--discard)")
    if free_labs:
        notes.append(f"and {format_count(free_labs, 'lab')} that {'costs' if free_labs == 1 else 'cost'} nothing")
    title = "Made by this workspace, but not in its records"
    return View(
        title="This will be taken down for good",
        blocks=[
            table(columns, rows),
            table(["kind", text_column("id"), "region", "state"], things, title=title),
            Items(notes),
        ],
    )


def ending_runs(runs: Sequence[RunRecord]) -> View:
    """Show the runs that would end because nodes of their lab are about to be removed or rebuilt."""
    ends = [f"{_say_unseen(run.id, run.stack)}, {_COLLECTED}" for run in runs]
    return View(title="Nodes with a run on them will be removed or rebuilt", blocks=[Items(ends)])


def _say_unseen(run: str, stack: str) -> str:
    return f"run {run} on {stack}, which may still be running"
