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
from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plot_worker import PlotWorker
from gpucourse.model.manifest import Plot
from tests.waiting import STUCK_S

PLOT = Plot.model_validate(
    {
        "file": "speed", "title": "Speed", "kind": "line", "rows": "metrics.rows", "x": "x", "x_title": "x (s)",
        "y_title": "y (s)", "series": [{"key": "y", "label": "y", "low": "low", "high": "high"}],
    }
)  # fmt: skip
RECORD = RecordedPlot(gpu="Imaginary GPU 1", caption="recorded 2026-01-02", rows=({"x": 3, "y": 5.0},))
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
    """Draw both plots, the second with a record, into the folder, and return what is in it."""
    errors = plot_worker.draw((PLOT, OTHER), metrics, subtitle="3.2 · É", folder=folder, records={"time": RECORD})
    assert errors == []
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def no_drawing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on only another process can draw."""
    monkeypatch.setattr(plots, "draw", None)


def test_draw_by_its_process_gives_the_same_bytes(
    plot_worker: PlotWorker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    local_folder, worker_folder = tmp_path / "here", tmp_path / "there"
    plots.draw(PLOT, METRICS, subtitle="3.2 · É", folder=local_folder)
    plots.draw(OTHER, METRICS, subtitle="3.2 · É", folder=local_folder, record=RECORD)
    assert begin(plot_worker) is begin(plot_worker)
    request.getfixturevalue("no_drawing_here")
    names = draw_both(plot_worker, worker_folder)
    assert names == ["speed.png", "speed.svg", "time.png", "time.svg"]
    assert all((local_folder / name).read_bytes() == (worker_folder / name).read_bytes() for name in names)


@pytest.mark.parametrize("has_worker", [True, False], ids=["by its process", "here"])
def test_draw_returns_errors_as_they_are(plot_worker: PlotWorker, tmp_path: Path, has_worker: bool) -> None:
    if has_worker:
        begin(plot_worker)
    empty = OTHER.model_copy(update={"rows": "metrics.none"})
    ((plot, missing),) = plot_worker.draw((empty, PLOT), METRICS, subtitle="", folder=tmp_path)
    assert plot == empty
    assert sorted(path.name for path in tmp_path.iterdir()) == ["speed.png", "speed.svg"], "the other one is drawn"
    assert type(missing) is MissingError
    assert missing.what == "the run has no metrics.none"
    assert "metrics.json" in missing.hint
    (tmp_path / "full").write_text("no folder")
    ((_plot, storage),) = plot_worker.draw((PLOT,), METRICS, subtitle="", folder=tmp_path / "full")
    assert isinstance(storage, StorageError)
    assert storage.what.startswith("cannot write ")
    assert "speed.png" in storage.what
    assert "move away what is at" in storage.hint


def test_draw_draws_here_if_its_process_is_missing_or_killed(plot_worker: PlotWorker, tmp_path: Path) -> None:
    assert len(draw_both(plot_worker, tmp_path / "never set up")) == 4
    process = begin(plot_worker)
    draw_both(plot_worker, tmp_path / "before")
    process.kill()
    assert process.wait(STUCK_S) == -signal.SIGKILL
    assert len(draw_both(plot_worker, tmp_path / "after")) == 4
    assert plot_worker.process is None


def test_close_leaves_no_process(plot_worker: PlotWorker, tmp_path: Path) -> None:
    process = begin(plot_worker)
    draw_both(plot_worker, tmp_path)
    plot_worker.close()
    assert process.returncode in {0, -signal.SIGKILL}
    plot_worker.close()


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd_open is Linux's")
def test_serve_ends_with_the_process_that_began_it() -> None:
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
def test_serve_imports_no_file_of_the_learner(plot_worker: PlotWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken for the library')")
    monkeypatch.chdir(tmp_path)
    begin(plot_worker)
    assert len(draw_both(plot_worker, tmp_path / "drawn")) == 4
