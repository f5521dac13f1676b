from __future__ import annotations

from gpucourse.model.sweep import Point, Sweep
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from tests.learning import Learning
from tests.unit.ui.page.pages import HOSTILE, pages_of


def test_list_sweeps_links_to_the_runs_of_each(learning: Learning) -> None:
    record = learning.record("1.1")
    sweep_id = runs.new_run(learning.context.paths, "1.1")
    points = [Point(value=10, run=record.id, state="succeeded", seconds=2.0), Point(value=20, state="failed", error=HOSTILE)]
    sweep = Sweep(id=sweep_id, exercise="1.1", parameter="depth", created=record.created, state="done", points=points)
    write_record(learning.context.paths.run("1.1", sweep_id).sweep, sweep)
    page = pages_of(learning)["sweeps.html"]
    assert f'href="runs/1.1/{record.id}.html"' in page
    assert "1.1 Source, by depth" in page
    assert "<script>alert" not in page
