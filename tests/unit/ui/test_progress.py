from __future__ import annotations

import pytest

from gpucourse.model.event import NodeEvent, ResourceEvent, Stage
from gpucourse.ui.progress import MAX_LISTED, Progress


def test_progress_explains_silence_until_a_rank_prints() -> None:
    silent = Stage(name="run", text="running", silence="importing torch")
    progress = Progress()
    progress.stage(silent, 0.0)
    assert [row.plain for row in progress.rows(1.0, 10, 80)][1] == "    importing torch …"
    progress.note_output()
    assert len(progress.rows(1.0, 10, 80)) == 1


def test_stage_of_many_nodes_ends_with_their_median_and_the_slowest() -> None:
    progress = Progress()
    progress.stage(Stage(name="push", text="pushing"), 0.0)
    for number in range(MAX_LISTED + 1):
        progress.node(NodeEvent(node=f"node{number}", step="push", ok=True, seconds=1.0 + number), 9.0)
    rows = progress.stage(Stage(name="push", text="pushing", seconds=9.0), 9.0)
    assert [" ".join(row.plain.split()) for row in rows] == [
        "✓ pushing 9.00 s", "✓ 9 nodes: push median 5.00 s, slowest 9.00 s (node8)",
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "ending"), [(39, "0.0 s"), (79, "0 of 1")])
def test_stage_with_a_long_name_keeps_its_time_and_the_bar_that_has_room(width: int, ending: str) -> None:
    progress = Progress()
    progress.stage(Stage(name="apply", text="building " + "a lab " * 20), 0.0)
    progress.resource(ResourceEvent(address="a", action="create", state="started", seconds=0.0), 0.0)
    row = progress.rows(0.0, 10, width)[0]
    assert row.cell_len <= width
    assert row.plain.endswith(ending)
    assert "0.0 s" in row.plain


def test_stage_that_ends_fits_a_narrow_terminal() -> None:
    (row,) = Progress(columns=39).stage(Stage(name="plan", text="planning", seconds=0.3), 0.0)
    assert row.plain.endswith("0.30 s")
    assert row.cell_len == 39
