"""An easel: the same pictures and the same errors, whether its own process draws them or this one."""

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
from gpucourse.figures.easel import Easel
from gpucourse.model.manifest import Plot

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
METRICS = {"rows": [{"x": 1, "y": 2.0, "low": 1.5, "high": float("nan")}, {"x": 2, "y": 3.0, "low": 2.0, "high": 4.0}]}
PATIENCE_S = 60.0


@pytest.fixture
def easel() -> Iterator[Easel]:
    with closing(Easel()) as one:
        yield one


def painter_of(easel: Easel) -> subprocess.Popen[bytes]:
    assert easel.painter is not None
    return easel.painter


def made_ready(easel: Easel) -> subprocess.Popen[bytes]:
    easel.set_up()
    painter = painter_of(easel)
    assert painter.stdout is not None
    assert select.select([painter.stdout], [], [], PATIENCE_S)[0], "it never got ready"
    return painter


def test_its_process_draws_the_same_bytes(easel: Easel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = plots.draw(PLOT, METRICS, subtitle="3.2 · É", folder=tmp_path / "here")
    made_ready(easel)
    monkeypatch.setattr(plots, "draw", None)  # whoever would draw here now, fails
    for _again in range(2):
        there = easel.draw(PLOT, METRICS, subtitle="3.2 · É", folder=tmp_path / "there")
        assert [path.name for path in there] == [path.name for path in here]
        assert [path.read_bytes() for path in there] == [path.read_bytes() for path in here]


def test_it_is_easy_on_the_processors_until_it_is_asked(easel: Easel, tmp_path: Path) -> None:
    painter = made_ready(easel)
    assert os.getpriority(os.PRIO_PROCESS, painter.pid) == os.getpriority(os.PRIO_PROCESS, 0), "pictures are drawn at once"
    easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path)


@pytest.mark.parametrize("ready", [True, False], ids=["by its process", "here"])
def test_errors_come_as_they_are(easel: Easel, tmp_path: Path, ready: bool) -> None:
    if ready:
        made_ready(easel)
    with pytest.raises(MissingError, match=r"nothing to draw in speed") as missing:
        easel.draw(PLOT, {"rows": []}, subtitle="", folder=tmp_path)
    assert not isinstance(missing.value, StorageError)
    assert "metrics.json" in missing.value.hint
    (tmp_path / "full").write_text("no folder")
    with pytest.raises(StorageError, match=r"speed\.png cannot be written") as storage:
        easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "full")
    assert "df -h" in storage.value.hint


def test_not_ready_or_killed_it_draws_here(easel: Easel, tmp_path: Path) -> None:
    assert len(easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "never set up")) == 2
    painter = made_ready(easel)
    easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "before")
    painter.kill()
    assert painter.wait(PATIENCE_S) == -signal.SIGKILL
    assert len(easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "after")) == 2
    easel.set_up()
    busy = painter_of(easel)
    busy.send_signal(signal.SIGSTOP)  # as on a machine that leaves it no time
    assert len(easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "busy")) == 2
    assert busy.returncode == -signal.SIGKILL, "one that nobody waits for is ended"


def test_nothing_runs_on_after_it_is_closed(easel: Easel, tmp_path: Path) -> None:
    ready = made_ready(easel)
    easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path)
    easel.close()
    assert ready.returncode == 0
    easel.close()
    easel.set_up()
    fresh = painter_of(easel)
    easel.close()
    assert fresh.returncode is not None


@pytest.mark.skipif(sys.platform != "linux", reason="pidfd_open is Linux's")
def test_it_ends_with_whoever_began_it() -> None:
    ask = "from gpucourse.figures.easel import Easel\none = Easel(); one.set_up(); print(one.painter.pid, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        painter = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    try:
        assert select.select([painter], [], [], PATIENCE_S)[0], "it draws for nobody"
    finally:
        os.close(painter)


def test_a_file_of_the_learners_is_not_imported(easel: Easel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('taken for the library')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plots, "draw", None)
    made_ready(easel)
    assert len(easel.draw(PLOT, METRICS, subtitle="", folder=tmp_path / "drawn")) == 2
