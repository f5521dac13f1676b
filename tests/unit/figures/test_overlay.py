"""Points of a GPU's record in a plot: dashed, labelled as not the learner's, on the axes of the run. The GPU does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.patches import Rectangle

from gpucourse.errors import MissingError
from gpucourse.figures.overlay import DASHES, RecordedPlot, add_record
from gpucourse.figures.plots import collect_points
from gpucourse.figures.rows import drawable
from gpucourse.model.manifest import Plot
from tests.unit.figures.test_plots import BAR, compose, list_texts

LINE: dict[str, Any] = {
    "file": "bandwidth", "title": "Bandwidth", "kind": "line", "rows": "metrics.rows", "x": "mib", "by": "way",
    "series": [{"key": "gb_per_s", "label": "speed"}], "x_title": "size (MiB)", "y_title": "speed (GB/s)",
}  # fmt: skip
OWN = {"rows": [{"mib": 1, "way": "copy", "gb_per_s": 2.0}, {"mib": 2, "way": "copy", "gb_per_s": 3.0}]}
LABEL = "recorded on Imaginary GPU 1, not yours"
CAPTION = "recorded 2026-01-02: torch 0.0.1"


def record_of(*rows: dict[str, Any]) -> RecordedPlot:
    return RecordedPlot(gpu="Imaginary GPU 1", caption=CAPTION, rows=rows)


RECORD = record_of({"mib": 1, "way": "copy", "gb_per_s": 20.0}, {"mib": 4, "way": "fill", "gb_per_s": 40.0})


def test_add_record_draws_a_dashed_line_with_its_label() -> None:
    plot = Plot.model_validate(LINE)
    figure = compose(plot, add_record(plot, drawable(plot, OWN), RECORD))
    assert {LABEL, CAPTION, "copy", "fill"} <= set(list_texts(figure))
    run_line, copy, fill, legend = figure.axes[0].lines
    assert run_line.get_linestyle() == "-"
    assert {line.get_linestyle() for line in (copy, fill, legend)} == {"--"}
    assert (copy.get_color(), fill.get_color() == run_line.get_color()) == (run_line.get_color(), False)
    assert {line.get_markerfacecolor() for line in (copy, fill)} == {"none"}


def test_add_record_outlines_bars_at_the_words_of_the_run() -> None:
    plot = Plot.model_validate(BAR)
    metrics = {"comparison": [{"case": "1 rank", "speedup": 1.0}, {"case": "2 ranks", "speedup": 1.8}]}
    record = record_of({"case": "2 ranks", "speedup": 1.9}, {"case": "8 ranks", "speedup": 7.0})
    figure = compose(plot, add_record(plot, drawable(plot, metrics), record))
    (axes,) = figure.axes
    outlines = [bar for bar in axes.patches if isinstance(bar, Rectangle) and not bar.get_fill()]
    assert [(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in outlines] == [(1.0, 1.9)]
    own_bars = [bar for bar in axes.patches if bar not in outlines]
    assert all(outlines[0].get_zorder() > bar.get_zorder() for bar in own_bars), "a lower one is not hidden"
    assert outlines[0].get_linestyle() in {DASHES, "--"}
    assert {LABEL, CAPTION} <= set(list_texts(figure))
    assert "8 ranks" not in list_texts(figure)


@pytest.mark.parametrize("base", [LINE, BAR], ids=["line", "bar"])
def test_record_alone_shows_what_only_a_gpu_measures(base: dict[str, Any]) -> None:
    rows = [{"mib": 1, "way": "copy", "gb_per_s": 20.0, "case": "2 ranks", "speedup": 1.9}]
    plot = Plot.model_validate({**base, "evidence": "gpu"})
    metrics: dict[str, Any] = {plot.rows.removeprefix("metrics."): []}
    texts = list_texts(compose(plot, collect_points(plot, metrics, record_of(*rows))))
    assert {LABEL, "not measured in this run: it had no GPU", CAPTION} <= set(texts)
    with pytest.raises(MissingError):
        collect_points(plot, metrics, None)
    with pytest.raises(MissingError):
        collect_points(Plot.model_validate(base), metrics, record_of(*rows))


@pytest.mark.parametrize(
    "record",
    [
        record_of(),
        record_of({"mib": 1, "way": "copy", "gb_per_s": None}),
        record_of({"mib": "small", "way": "copy", "gb_per_s": 1.0}),
        record_of(*OWN["rows"]),
    ],
    ids=["no row", "no number", "words where the run has numbers", "the points of the run"],
)
def test_add_record_changes_nothing_if_it_has_no_other_point_on_these_axes(record: RecordedPlot) -> None:
    plot = Plot.model_validate(LINE)
    data = drawable(plot, OWN)
    assert add_record(plot, data, record) == data


def test_add_record_leaves_out_values_that_would_make_the_run_look_like_0() -> None:
    plot = Plot.model_validate(LINE)
    data = add_record(plot, drawable(plot, OWN), record_of({"mib": 1, "way": "copy", "gb_per_s": 301.0}))
    assert (data.recorded, data.notes) == (
        {},
        ["not drawn: what was recorded on Imaginary GPU 1, more than 100 times as large"],
    )
