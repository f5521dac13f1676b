"""Charts of the page: every point has its value, whatever the numbers are, and texts are escaped."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import pytest

from gpucourse.figures.overlay import RecordedPlot
from gpucourse.figures.plots import collect_points
from gpucourse.model.manifest import Plot, Series
from gpucourse.ui.page.chart import HEIGHT, WIDTH, draw_chart

NAME = '<b>"&'


def plot(**changes: Any) -> Plot:
    fields = {"file": "p", "title": NAME, "kind": "line", "rows": "metrics.rows", "x": "n", "x_title": NAME, "y_title": NAME}
    return Plot(**(fields | {"series": (Series(key="y", label=NAME, low="low", high="high"),)} | changes))


def draw(plot_of: Plot, *rows: dict[str, Any], record: RecordedPlot | None = None) -> ET.Element:
    """Return the chart as it is read by a parser of XML, which takes no broken mark-up."""
    return ET.fromstring(draw_chart(plot_of, collect_points(plot_of, {"rows": list(rows)}, record)))


def titles(chart: ET.Element) -> list[str]:
    """Return the values that are under the pointer."""
    return [str(mark.findtext("title")) for mark in chart.iter() if "p" in mark.attrib.get("class", "").split()]


def test_draw_chart_says_the_value_and_spread_of_each_point() -> None:
    chart = draw(plot(), {"n": 1, "y": 2.5, "low": 2.0, "high": 3.0}, {"n": 2, "y": 1e6})
    assert titles(chart) == [f"{NAME}: 2.5 (2 to 3) at 1", f"{NAME}: 1e+06 at 2"]
    assert chart.attrib["aria-label"] == f"{NAME}: {NAME} by {NAME}"


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
    texts = [text.text for text in chart.iter("text")]
    assert {"one rank", "two", "ideal"} <= set(texts)


def test_draw_chart_marks_what_another_gpu_recorded() -> None:
    record = RecordedPlot(gpu="NVIDIA X", caption="in spring", rows=[{"n": 1, "y": 9.0}])
    chart = draw(plot(), {"n": 1, "y": 2.5}, {"n": 2, "y": 3.5}, record=record)
    assert titles(chart)[-1] == f"{NAME}: 9 at 1 (recorded on NVIDIA X, not yours)"
    assert "recorded on NVIDIA X, not yours" in [text.text for text in chart.iter("text")]
