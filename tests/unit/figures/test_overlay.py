"""Points of a GPU's record in a plot: dashed, labelled as not the learner's, on the axes of the run. The GPU does not exist."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from matplotlib.patches import Rectangle

from gpucourse.errors import MissingError
from gpucourse.figures.overlay import DASHES, RecordedPlot, add_record
from gpucourse.figures.plot_worker import PlotWorker
from gpucourse.figures.plots import _figure, draw
from gpucourse.figures.rows import drawable
from gpucourse.model.manifest import Plot
from tests.unit.figures.test_plots import BAR, texts

LINE: dict[str, Any] = {
    "file": "bandwidth",
    "title": "Bandwidth",
    "kind": "line",
    "rows": "metrics.rows",
    "x": "mib",
    "by": "way",
    "series": [{"key": "gb_per_s", "label": "speed"}],
    "x_title": "size (MiB)",
    "y_title": "speed (GB/s)",
}
OWN = {"rows": [{"mib": 1, "way": "copy", "gb_per_s": 2.0}, {"mib": 2, "way": "copy", "gb_per_s": 3.0}]}
LABEL = "recorded on Imaginary GPU 1, not yours"
CAPTION = "recorded 2026-01-02: torch 0.0.1"


def record_of(*rows: dict[str, Any]) -> RecordedPlot:
    return RecordedPlot(gpu="Imaginary GPU 1", caption=CAPTION, rows=rows)


RECORD = record_of({"mib": 1, "way": "copy", "gb_per_s": 20.0}, {"mib": 4, "way": "fill", "gb_per_s": 40.0})


def test_a_line_of_the_record_is_dashed_and_has_its_label(tmp_path: Path) -> None:
    plot = Plot.model_validate(LINE)
    _, svg = draw(plot, OWN, subtitle="", folder=tmp_path, record=RECORD)
    assert {LABEL, CAPTION, "speed: copy", "speed: fill"} <= set(texts(svg))
    lines = _figure(plot, add_record(plot, drawable(plot, OWN), RECORD), "").axes[0].lines
    own, copy, fill, legend = lines
    assert own.get_linestyle() == "-"
    assert {line.get_linestyle() for line in (copy, fill, legend)} == {"--"}
    assert (copy.get_color(), fill.get_color() == own.get_color()) == (own.get_color(), False)
    assert {line.get_markerfacecolor() for line in (copy, fill)} == {"none"}


def test_bars_of_the_record_are_outlines_at_the_words_of_the_run(tmp_path: Path) -> None:
    plot = Plot.model_validate(BAR)
    own = {"comparison": [{"case": "1 rank", "speedup": 1.0}, {"case": "2 ranks", "speedup": 1.8}]}
    record = record_of({"case": "2 ranks", "speedup": 1.9}, {"case": "8 ranks", "speedup": 7.0})
    axes = _figure(plot, add_record(plot, drawable(plot, own), record), "").axes[0]
    outlines = [bar for bar in axes.patches if isinstance(bar, Rectangle) and not bar.get_fill()]
    assert [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in outlines] == [(1.0, 1.9)]
    own_bars = [bar for bar in axes.patches if bar not in outlines]
    assert all(outlines[0].get_zorder() > bar.get_zorder() for bar in own_bars), "a lower one is not hidden"
    assert outlines[0].get_linestyle() in {DASHES, "--"}
    _, svg = draw(plot, own, subtitle="", folder=tmp_path, record=record)
    assert {LABEL, CAPTION} <= set(texts(svg))
    assert "8 ranks" not in texts(svg)


@pytest.mark.parametrize("base", [LINE, BAR], ids=["line", "bar"])
def test_what_only_a_gpu_measures_is_shown_from_the_record_alone(base: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"mib": 1, "way": "copy", "gb_per_s": 20.0, "case": "2 ranks", "speedup": 1.9}]
    plot = Plot.model_validate({**base, "evidence": "gpu"})
    own: dict[str, Any] = {plot.rows.removeprefix("metrics."): []}
    _, svg = draw(plot, own, subtitle="", folder=tmp_path, record=record_of(*rows))
    assert {LABEL, "not measured in this run: it had no GPU", CAPTION} <= set(texts(svg))
    with pytest.raises(MissingError):
        draw(plot, own, subtitle="", folder=tmp_path)
    with pytest.raises(MissingError):
        draw(Plot.model_validate(base), own, subtitle="", folder=tmp_path, record=record_of(*rows))


@pytest.mark.parametrize(
    "record",
    [
        record_of(),
        record_of({"mib": 1, "way": "copy", "gb_per_s": None}),
        record_of({"mib": "small", "way": "copy", "gb_per_s": 1.0}),
    ],
    ids=["no row", "no number", "words where the run has numbers"],
)
def test_a_record_that_has_no_point_on_these_axes_changes_nothing(record: RecordedPlot) -> None:
    plot = Plot.model_validate(LINE)
    data = drawable(plot, OWN)
    assert add_record(plot, data, record) == data


def test_the_plot_worker_draws_the_same_with_a_record_and_nothing_without(tmp_path: Path) -> None:
    plot = Plot.model_validate(LINE)
    for name, record in (("with", RECORD), ("without", None)):
        draw(plot, OWN, subtitle="s", folder=tmp_path / name, record=record)
    assert LABEL not in texts(tmp_path / "without" / "bandwidth.svg")
    records = {"with": {"bandwidth": RECORD}, "without": {"another": RECORD}}
    with closing(PlotWorker()) as worker:
        worker.set_up()
        for name, by_file in records.items():
            assert worker.draw((plot,), OWN, subtitle="s", folder=tmp_path / f"{name}-worker", records=by_file) == []
            drawn, wanted = (tmp_path / folder / "bandwidth.svg" for folder in (f"{name}-worker", name))
            assert drawn.read_bytes() == wanted.read_bytes()
