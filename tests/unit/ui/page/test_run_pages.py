from __future__ import annotations

from gpucourse.workspace import runs
from tests.learning import SCRIPT, Learning
from tests.unit.ui.page.pages import HOSTILE, Reader, pages_of


def test_build_run_shows_everything_beside_a_damaged_file(learning: Learning) -> None:
    record, whole = learning.record("1.1"), learning.record("1.2")
    learning.context.paths.run("1.1", record.id).metrics.write_text("{")
    pages = pages_of(learning)
    assert "metrics.json" in pages[f"runs/1.1/{record.id}.html"]
    assert "found it" in pages[f"runs/1.1/{record.id}.html"]
    assert "It is wet" in pages[f"runs/1.2/{whole.id}.html"]
    assert f"runs/1.2/{whole.id}.html" in pages["exercises/1.2.html"]


def test_build_run_shows_edits_folded_and_escaped(learning: Learning) -> None:
    whole, edited_run = learning.record("1.1"), learning.record("1.1")
    file = learning.context.paths.run("1.1", edited_run.id).edited_file("source.py")
    file.parent.mkdir()
    file.write_text(f"# {HOSTILE}\n{SCRIPT}")
    edited_run.edited = ["source.py"]
    runs.save(learning.context.paths, edited_run)
    pages = pages_of(learning)
    page = pages[f"runs/1.1/{edited_run.id}.html"]
    assert "<details><summary>source.py" in page
    assert "the course&#39;s script, 1 added, 0 removed" in page
    assert '<span class="good">+# &lt;/pre&gt;' in page
    assert Reader(page).count("script") == 1
    assert "\x1b" not in page
    assert "Edited files" not in pages[f"runs/1.1/{whole.id}.html"]
    file.unlink()
    assert "edited, but the run has no copy of it" in pages_of(learning)[f"runs/1.1/{edited_run.id}.html"]


def test_build_run_says_nothing_about_the_fault_of_a_drill_that_is_running(learning: Learning) -> None:
    under_way, ended = learning.record(state="running", drill=True), learning.record(state="broken", drill=True)
    pages = pages_of(learning)
    assert "<dt>fault</dt>" not in pages[f"runs/1.1/{under_way.id}.html"]
    assert "not found yet" in pages[f"runs/1.1/{ended.id}.html"]
