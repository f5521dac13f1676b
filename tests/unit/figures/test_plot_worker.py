"""PlotWorker: the same pictures and the same errors, whether its own process draws them or this one."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, StorageError
from gpucourse.figures import plots
from gpucourse.figures.plot_worker import PlotWorker
from gpucourse.model.manifest import Plot
from tests.waiting import STUCK_S

PLOT = Plot.model_validate(
    {
        "file": "speed",
        "title": "Speed",
        "kind": "line",
        "rows": "metrics.rows",
        "x": "x",
        "series": [{"key": "y", "label": "y", "low": "low", "high": "high"}],
        "x_title": "x (s)",
        "y_title": "y (s)",
    }
)
OTHER = PLOT.model_copy(update={"file": "time", "title": "Time"})
METRICS: dict[str, object] = {
    "rows": [{"x": 1, "y": 2.0, "low": 1.5, "high": float("nan")}, {"x": 2, "y": 3.0, "low": 2.0, "high": 4.0}]
}


@pytest.fixture
def plot_worker() -> Iterator[PlotWorker]:
    with closing(PlotWorker()) as worker:
        yield worker


def process_of(plot_worker: PlotWorker) -> subprocess.Popen[bytes]:
    assert plot_worker.process is not None
    return plot_worker.process


def begin(plot_worker: PlotWorker) -> subprocess.Popen[bytes]:
    plot_worker.set_up()
    return process_of(plot_worker)


def draw_both(plot_worker: PlotWorker, folder: Path, metrics: dict[str, object] = METRICS) -> list[str]:
    """What is in the folder after both plots were drawn into it."""
    assert plot_worker.draw((PLOT, OTHER), metrics, subtitle="3.2 · É", folder=folder) == []
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def no_drawing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on only another process can draw."""
    monkeypatch.setattr(plots, "draw", None)


def test_its_process_draws_the_same_bytes(plot_worker: PlotWorker, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for plot in (PLOT, OTHER):
        plots.draw(plot, METRICS, subtitle="3.2 · É", folder=tmp_path / "here")
    begin(plot_worker)
    request.getfixturevalue("no_drawing_here")
    for again in ("once", "again"):
        names = draw_both(plot_worker, tmp_path / again)
        assert names == ["speed.png", "speed.svg", "time.png", "time.svg"]
        assert all((tmp_path / "here" / name).read_bytes() == (tmp_path / again / name).read_bytes() for name in names)


def test_what_is_drawn_already_is_not_drawn_again(plot_worker: PlotWorker, tmp_path: Path) -> None:
    begin(plot_worker)
    metrics: dict[str, object] = {"rows": [{"x": 1, "y": 2.0, "low": 1.5, "high": 2.5}]}
    (first, *_) = draw_both(plot_worker, tmp_path, metrics)
    drawn = (tmp_path / first).stat().st_ino
    draw_both(plot_worker, tmp_path, dict(metrics))
    assert (tmp_path / first).stat().st_ino == drawn
    draw_both(plot_worker, tmp_path, {"rows": [{"x": 1, "y": 3.0, "low": 1.5, "high": 3.5}]})
    assert (tmp_path / first).stat().st_ino != drawn


def test_a_process_that_another_thread_has_left_draws_no_more(plot_worker: PlotWorker, tmp_path: Path) -> None:
    """A Ctrl-C closes it while early outputs are drawn."""
    stdin = begin(plot_worker).stdin
    assert stdin is not None
    stdin.close()
    assert draw_both(plot_worker, tmp_path) == ["speed.png", "speed.svg", "time.png", "time.svg"]
    assert plot_worker.process is None


def test_setting_it_up_again_changes_nothing(plot_worker: PlotWorker) -> None:
    assert begin(plot_worker) is begin(plot_worker)


@pytest.mark.parametrize("own", [True, False], ids=["by its process", "here"])
def test_errors_come_as_they_are(plot_worker: PlotWorker, tmp_path: Path, own: bool) -> None:
    if own:
        begin(plot_worker)
    (plot, missing), (other, _same) = plot_worker.draw((PLOT, OTHER), {"rows": []}, subtitle="", folder=tmp_path)
    assert (plot, other) == (PLOT, OTHER)
    assert type(missing) is MissingError
    assert missing.what == "the run has no metrics.rows"
    assert "metrics.json" in missing.hint
    (tmp_path / "full").write_text("no folder")
    ((_plot, storage),) = plot_worker.draw((PLOT,), METRICS, subtitle="", folder=tmp_path / "full")
    assert isinstance(storage, StorageError)
    assert storage.what.startswith("cannot write ")
    assert "speed.png" in storage.what
    assert "move away what lies at" in storage.hint


def test_one_that_cannot_be_drawn_does_not_keep_the_other(plot_worker: PlotWorker, tmp_path: Path) -> None:
    begin(plot_worker)
    empty = OTHER.model_copy(update={"rows": "metrics.none"})
    ((plot, _error),) = plot_worker.draw((empty, PLOT), METRICS, subtitle="", folder=tmp_path)
    assert plot == empty
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.png", "speed.svg"]


def test_never_set_up_or_killed_it_draws_here(plot_worker: PlotWorker, tmp_path: Path) -> None:
    assert len(draw_both(plot_worker, tmp_path / "never set up")) == 4
    process = begin(plot_worker)
    draw_both(plot_worker, tmp_path / "before")
    process.kill()
    assert process.wait(STUCK_S) == -signal.SIGKILL
    assert len(draw_both(plot_worker, tmp_path / "after")) == 4
    assert plot_worker.process is None


def test_nothing_runs_on_after_it_is_closed(plot_worker: PlotWorker, tmp_path: Path) -> None:
    ready = begin(plot_worker)
    draw_both(plot_worker, tmp_path)
    plot_worker.close()
    assert ready.returncode in {0, -signal.SIGKILL}
    plot_worker.close()
    plot_worker.set_up()
    fresh = process_of(plot_worker)
    plot_worker.close()
    assert fresh.returncode is not None


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd_open is Linux's")
def test_it_ends_with_whoever_began_it() -> None:
    ask = (
        "from gpucourse.figures.plot_worker import PlotWorker\n"
        "worker = PlotWorker(); worker.set_up()\n"
        "print(worker.process.pid, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        process = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([process], [], [], STUCK_S)[0], "it draws for nobody"
    finally:
        os.close(process)


@pytest.mark.usefixtures("no_drawing_here")
def test_a_file_of_the_learners_is_not_imported(
    plot_worker: PlotWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken for the library')")
    monkeypatch.chdir(tmp_path)
    begin(plot_worker)
    assert len(draw_both(plot_worker, tmp_path / "drawn")) == 4
