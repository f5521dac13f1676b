"""The layout of pictures: nothing covers the data, touches its neighbour or is cut, and colours can be distinguished."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from matplotlib import rc_context
from matplotlib.text import Text

from gpucourse.figures.rows import drawable
from gpucourse.figures.style import STYLE
from gpucourse.model.manifest import Plot
from tests.unit.figures.test_plots import BAR, LINE, compose


def lay_out(plot: dict[str, Any], rows: Sequence[Mapping[str, object]]) -> Any:
    """Return the figure of a plot as it is drawn."""
    model = Plot.model_validate({**plot, "rows": "metrics.rows"})
    figure = compose(model, drawable(model, {"rows": rows}))
    with rc_context(STYLE):
        figure.canvas.draw()
    return figure


MANY_LINES = [{"x": x, "y": 1.0 + x, "z": 9.0, "way": f"a way with a long name {way}"} for way in range(11) for x in (1, 2, 4)]
PHASES = [{"x": 10 * phase + x, "y": 100.0, "way": name} for phase, name in enumerate(("idle", "copying")) for x in (1, 4)]
POINTS = [{"x": 1.0 + x / 9, "y": 1.0 + x / 9, "way": f"kernel {x}th"} for x in range(9)]
MIDDLE = [{"x": x, "y": float(y), "way": f"to {end}"} for end, y in ((2, 9), (4, 1)) for x in (1, 2, 4) if x <= end]
WIDE_BARS = [{"case": f"A100 80 GB, number {number}", "a": 1e4 + number, "b": 2e4 + number} for number in range(11)]
BY_WAY = {**LINE, "x": "x", "by": "way", "series": [{"key": "y", "label": "measured"}]}
BY_LONG_WAY = {**BY_WAY, "series": [{"key": "y", "label": "measured by a long way"}, {"key": "z", "label": "possible"}]}
TWO_BARS = {**BAR, "ideal_key": None, "series": [{"key": key, "label": f"the time of {key}, with copies"} for key in "abc"]}


@pytest.mark.parametrize(
    ("plot", "rows"),
    [(BY_LONG_WAY, MANY_LINES[:6]), (TWO_BARS, WIDE_BARS), (TWO_BARS, WIDE_BARS[:2])],
    ids=["two lines", "eleven places", "two places"],
)
def test_draw_covers_no_data_and_cuts_no_text(plot: dict[str, Any], rows: Sequence[Mapping[str, object]]) -> None:
    figure = lay_out(plot, rows)
    (axes,) = figure.axes
    plot_area, whole = axes.get_window_extent(), figure.bbox
    entries = [text.get_window_extent() for text in axes.get_legend().get_texts()]
    below_titles = min(text.get_window_extent().y0 for text in figure.texts[:2])
    assert all(box.y0 >= plot_area.y1 - 2 or box.x0 >= plot_area.x1 for box in entries), "the legend is beside the data"
    assert all(whole.x0 <= box.x0 < box.x1 <= whole.x1 + 1 for box in entries)
    assert max(box.y1 for box in entries) <= below_titles + 2, "and below the title"
    assert axes.yaxis.label.get_window_extent().y1 <= below_titles + 2
    for text in (axes.yaxis.label, axes.xaxis.label, *(axes.get_xticklabels() if plot["kind"] == "bar" else ())):
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1, text.get_text()
        assert box.x1 <= whole.x1 + 1, text.get_text()
        assert box.y0 >= whole.y0 - 1, text.get_text()


@pytest.mark.parametrize("rows", [MANY_LINES, PHASES, POINTS, MIDDLE], ids=["lines", "phases", "points", "an end within"])
def test_draw_labels_lines_next_to_them_without_overlaps(rows: Sequence[Mapping[str, object]]) -> None:
    figure = lay_out({**BY_WAY, "log_x": False, "log_y": False}, rows)
    (axes,) = figure.axes
    labels = [text for text in axes.texts if text.get_text()]
    assert (axes.get_legend(), {text.get_text() for text in labels}) == (None, {row["way"] for row in rows})
    boxes = [Text.get_window_extent(text) for text in labels]
    assert not any(left.overlaps(right) for left, right in itertools.combinations(boxes, 2))
    assert all(figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1 for box in boxes)
    marks = [axes.transData.transform(point) for line in axes.lines for point in line.get_xydata()]
    assert not any(box.contains(*mark) for box in boxes for mark in marks)


def test_draw_has_bars_as_points_on_a_logarithmic_axis() -> None:
    axes = lay_out({**TWO_BARS, "log_y": True}, WIDE_BARS[:2]).axes[0]
    assert (len(axes.patches), len(axes.containers)) == (0, 2)


def test_draw_keeps_words_below_many_bars_apart() -> None:
    straight = lay_out(TWO_BARS, WIDE_BARS[:4]).axes[0].get_xticklabels()
    boxes = [text.get_window_extent() for text in straight]
    assert all(leftover.x1 <= right.x0 for leftover, right in itertools.pairwise(boxes))
    assert {text.get_rotation() for text in lay_out(TWO_BARS, WIDE_BARS).axes[0].get_xticklabels()} == {40.0}
    sizes = [{**WIDE_BARS[0], TWO_BARS["x"]: f"{2**power} KiB"} for power in range(12)]
    assert {text.get_rotation() for text in lay_out(TWO_BARS, sizes).axes[0].get_xticklabels()} == {40.0}, "short, but many"


def test_draw_reserves_no_room_for_a_series_without_a_value() -> None:
    """Its place in the legend would have the colour of the first series."""
    axes = lay_out(TWO_BARS, WIDE_BARS[:2]).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [f"the time of {key}, with copies" for key in "ab"]
    assert len({patch.get_facecolor() for patch in axes.patches}) == 2
