"""The screen of `compare`: runs side by side, with their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpucourse.ui.tables import Block, Facts, Paragraph, Table, View, facts
from gpucourse.ui.views.measured import grid_blocks

if TYPE_CHECKING:
    from gpucourse.learning.compare import Comparison


def compare(result: Comparison) -> View:
    """Show which runs are compared, their tables, where the charts are, and what the differences mean."""
    blocks: list[Block] = [
        facts([(record.id, f"{result.labels[record.id]} ({record.mode}, {record.state})") for record in result.records])
    ]
    for grid in result.grids:
        blocks += [block._replace(whole=True) if isinstance(block, Table) else block for block in grid_blocks(grid)]
    blocks.append(Facts([("file", str(path)) for path in result.files], title="Saved"))
    blocks.append(Paragraph(result.conclusion, "strong"))
    return View(
        title=f"{result.exercise}  {result.title}, compared",
        blocks=blocks,
        footer=[f"How much of the difference is noise? Repeat a run, and compare: {result.repeat}"] if result.repeat else [],
        mode=result.mode,
    )
