"""A picture for the reports of all formats."""

from __future__ import annotations

import pytest

from gpucourse.figures.plots import draw
from gpucourse.model.manifest import Plot, Series
from gpucourse.model.report import Picture


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Picture:
    series = (Series(key="tflops", label="TFLOP/s"),)
    plot = Plot(
        file="peak", title="Peak", kind="bar", rows="metrics.rows", x="gpu", series=series, x_title="GPU", y_title="TFLOP/s"
    )
    rows = [{"gpu": "T4", "tflops": 41.2}, {"gpu": "L4", "tflops": 58.9}]
    folder = tmp_path_factory.mktemp("picture")
    png, svg = sorted(draw(plot, {"rows": rows}, subtitle="made up", folder=folder))
    return Picture(title="Peak", png=png.read_bytes(), svg=svg.read_bytes())
