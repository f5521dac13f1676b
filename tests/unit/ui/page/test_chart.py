"""Charts of the page: every point has its value, whatever the numbers are, and texts are escaped."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import collect_points
from gpucourse.model.manifest import Plot, Series
from gpucourse.ui.page.chart import HEIGHT, WIDTH, OtherRun, draw_chart

NAME = '<b>"&'


def plot(**changes: Any) -> Plot:
    fields = {"file": "p", "title": NAME, "kind": "line", "rows": "metrics.rows", "x": "n", "x_title": NAME, "y_title": NAME}
    return Plot(**(fields | {"series": (Series(key="y", label=NAME, low="low", high="high"),)} | changes))


def draw(plot_of: Plot, *rows: dict[str, Any], record: RecordedPlot | None = None) -> ET.Element:
    """Return the legend and the chart as read by an XML parser, which refuses broken mark-up."""
    return ET.fromstring(f"<figure>{draw_chart(plot_of, collect_points(plot_of, {'rows': list(rows)}, record))}</figure>")


def draw_two(plot_of: Plot, other_rows: list[dict[str, Any]], *, together: bool = False) -> ET.Element:
    """Return the chart of a run with 1 at 1 and 2 at 2, and of another run named oak."""
    own, other = (collect_points(plot_of, {"rows": rows}, None) for rows in ([{"n": 1, "y": 1}, {"n": 2, "y": 2}], other_rows))
    return ET.fromstring(draw_chart(plot_of, own, [OtherRun(1, "oak", other)], together=together))


def titles(chart: ET.Element) -> list[str]:
    """Return the values that are shown under the pointer."""
    return [str(mark.findtext("title")) for mark in chart.iter() if "p" in mark.attrib.get("class", "").split()]


def test_draw_chart_says_the_value_and_spread_of_each_point() -> None:
    chart = draw(plot(), {"n": 1, "y": 2.5, "low": 2.0, "high": 3.0}, {"n": 2, "y": 1e6})
    assert titles(chart) == [f"{NAME}: 2.5 (2 to 3) at 1", f"{NAME}: 1e+06 at 2"]
    assert chart[0].attrib["aria-label"] == f"{NAME}: {NAME} by {NAME}"


@pytest.mark.parametrize(
    "values",
    [[5.0], [0.0], [0.0, 0.0], [-3.0, 4.0], [1e-90, 1e90], [7.0] * 3, list(range(1, 500)), [1e100, -1e100], [3e-7, 4e-7]],
    ids=str,
)
@pytest.mark.parametrize(
    "changes", [{"log_x": True, "log_y": True}, {"kind": "bar"}, {"x": "bytes", "log_x": True}, {"ideal": True}]
)
def test_draw_chart_keeps_its_marks_inside(values: list[float], changes: dict[str, Any]) -> None:
    if changes.get("log_y"):  # what is not above 0 has no place there
        values = [value for value in values if value > 0] or [1.0]
    if changes.get("kind") == "bar" and len(values) > 100:
        values = values[:100]
    chart = draw(
        plot(**changes),
        *({"n": index, "bytes": 2**index if index < 60 else index, "y": y} for index, y in enumerate(values, 1)),
    )
    assert 0 < len(titles(chart)) <= len(values)
    for mark in chart.iter():
        for names, limit in ((("cx", "x", "x1"), WIDTH), (("cy", "y", "y1", "y2"), HEIGHT)):
            for name in names:
                assert -40 <= float(mark.attrib.get(name, 0)) <= limit, mark.attrib


def test_draw_chart_puts_words_under_bars_and_the_ideal_beside_them() -> None:
    chart = draw(plot(kind="bar", ideal_key="best"), {"n": "one rank", "y": 1, "best": 1}, {"n": "two", "y": 1.5, "best": 2})
    assert titles(chart) == [f"{NAME}: 1 at one rank", f"{NAME}: 1.5 at two"]
    assert {"one rank", "two"} <= {text.text for text in chart.iter("text")}
    assert [key[0].tail for key in chart.iter("li")] == [f" {NAME}", " ideal"]


def test_draw_chart_slants_words_that_do_not_fit_side_by_side() -> None:
    words = [f"pages of {2**power} tokens" for power in range(12)]
    chart = draw(plot(kind="bar"), *({"n": word, "y": 1} for word in words))
    labels = [text.text for text in chart.iter("text") if "slant" in text.attrib.get("class", "")]
    assert labels == words


def test_draw_chart_draws_bars_as_points_on_a_logarithmic_axis() -> None:
    chart = draw(plot(kind="bar", log_y=True), {"n": "one rank", "y": 1}, {"n": "two", "y": 1000})
    assert [mark.tag for mark in chart.iter() if "p" in mark.attrib.get("class", "").split()] == ["circle", "circle"]


def test_draw_chart_marks_what_another_gpu_recorded() -> None:
    record = RecordedPlot(gpu="NVIDIA X", caption="in spring", rows=[{"n": 1, "y": 9.0}])
    chart = draw(plot(), {"n": 1, "y": 2.5}, {"n": 2, "y": 3.5}, record=record)
    assert titles(chart)[-1] == f"{NAME}: 9 at 1 (recorded on NVIDIA X, not yours)"
    assert [key[0].tail for key in chart.iter("li")] == [f" {NAME}", " recorded on NVIDIA X, not yours"]


def test_draw_chart_hides_another_run_until_the_script_shows_it() -> None:
    chart = draw_two(plot(), [{"n": 1, "y": 50.0}])
    assert titles(chart)[-1] == f"oak, {NAME}: 50 at 1"
    assert [(group.get("data-run"), group.get("class")) for group in chart.iter("g") if group.get("data-run")] == [
        ("0", None),
        ("1", "off"),
    ]
    assert json.loads(chart.attrib["data-y"])["high"] < 3, "the axis is that of the run itself"


def test_draw_chart_together_has_axes_for_all_runs() -> None:
    chart = draw_two(plot(kind="bar"), [{"n": 2, "y": 50.0}, {"n": 3, "y": 1.0}], together=True)
    assert json.loads(chart.attrib["data-y"])["high"] > 50
    assert [text.text for text in chart.iter("text") if text.get("y") == "338.0"] == ["1", "2", "3"]
    assert titles(chart)[2:] == [f"oak, {NAME}: 50 at 2", f"oak, {NAME}: 1 at 3"]
    assert "off" not in {group.get("class") for group in chart.iter("g")}


def test_draw_chart_draws_each_of_ten_lines_with_a_different_mark() -> None:
    keys = [f"y{index}" for index in range(10)]
    chart = draw(plot(series=tuple(Series(key=key, label=key) for key in keys)), {"n": 1} | dict.fromkeys(keys, 1))
    assert len({mark.attrib["class"] for mark in chart.iter() if "p" in mark.attrib.get("class", "").split()}) == len(keys)
    assert len({mark.attrib["class"] for mark in chart.iter("rect")}) == len(keys)
