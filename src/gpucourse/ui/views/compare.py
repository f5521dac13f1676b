"""Runs side by side on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.tables import Block, Column, Facts, Paragraph, View, facts, table

if TYPE_CHECKING:
    from gpucourse.learning.compare import Comparison


def compare(result: Comparison, next_step: str = "") -> View:
    """Show what is compared, its tables, what the differences mean, and where the charts are. `next_step`: the command that
    `next` names."""
    blocks: list[Block] = [
        facts([(record.id, f"{result.labels[record.id]} ({record.mode}, {record.state})") for record in result.records])
    ]
    for grid in result.grids:
        if not grid.rows:
            blocks.append(Paragraph(f"{grid.title}: {grid.note}", "dim"))
            continue
        columns: list[Column | str] = [
            Column(title, align="right" if numeric else "left", wrap=not numeric)
            for title, numeric in zip(grid.columns, grid.numeric, strict=True)
        ]
        blocks.append(table(columns, list(grid.rows), title=grid.title))
        if grid.note:
            blocks.append(Paragraph(grid.note, "dim"))
    blocks.append(Paragraph(result.conclusion, "strong"))
    if result.files:
        blocks.append(Facts(tuple(("file", str(path)) for path in result.files), title="Saved"))
    return View(
        title=f"{result.exercise}  {result.title}, compared",
        blocks=tuple(blocks),
        footer=(f"How much of it is noise? Run it again, and compare that run: {result.repeat}",) if result.repeat else (),
        mode=result.mode,
        next=next_step,
    )
