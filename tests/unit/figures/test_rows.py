"""Rows of a picture: which are drawn, and the note about the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpucourse.errors import MissingError
from gpucourse.figures.plots import draw
from gpucourse.model.manifest import Plot
from tests.unit.figures.test_plots import LINE, lines


@pytest.mark.parametrize(
    ("log", "values", "note"),
    [
        (
            False,
            [1.0, math.nan, math.inf, "nan", None, 2.0],
            "left out: tensor size 4 (not a number); tensor size 2, 3 (not finite); tensor size 5 (not measured)",
        ),
        (False, [True, -5.0, 5.0], "left out: tensor size 1 (not a number)"),
        (True, [-1.0, 0.0, 2.0, 4.0], "left out: tensor size 1, 2 (not above 0, on a logarithmic axis)"),
        (False, [1.0, *[None] * 7], "left out: 7 values (not measured)"),
    ],
    ids=["not finite", "truth", "no logarithm", "many"],
)
def test_drawable_names_what_is_left_out_and_why(log: bool, values: list[Any], note: str) -> None:
    rows = [{"x": x + 1, "y": y} for x, y in enumerate(values)]
    assert note in lines({"log_y": log}, rows)


def test_rows_and_lines_that_a_picture_leaves_out_are_counted() -> None:
    assert "2,000 of 5,000 rows drawn" in lines({}, [{"x": n, "y": n % 7} for n in range(5_000)])
    assert "100 of 3,000 rows drawn" in lines({"kind": "bar"}, [{"x": f"case {n}", "y": n} for n in range(3_000)])
    names = [{"x": n % 2, "y": n, "who": f"{n}\x1b[31m" + "w" * 5000} for n in range(1, 101)]
    assert "76 more lines not drawn" in lines({"by": "who"}, names)


@pytest.mark.parametrize(
    "metrics", [{}, {"sync": []}, {"sync": "x"}, {"sync": [{"bytes": 4, "median_ms": None}]}, {"sync": [3]}]
)
def test_find_rows_without_any_says_so_and_leaves_no_file(metrics: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"the run has no metrics|has a number for median_ms"):
        draw(Plot.model_validate(LINE), metrics, subtitle="", folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_rows_by_a_key_have_its_values_as_labels() -> None:
    rows = [{"layers": layers, "x": x, "y": layers * x} for layers in (2, 4) for x in (1, 2, 3)]
    texts = lines({"by": "layers", "series": [{"key": "y", "label": "layers"}]}, [*rows, {"layers": 4, "x": 4}])
    assert {"layers 2", "layers 4", "left out: layers 4 at 4 (not measured)"} <= set(texts)
    assert {"ring", "tree"} <= set(lines({"by": "way"}, [{**row, "way": ("ring", "tree")[row["layers"] // 4]} for row in rows]))


def test_drawable_has_the_reason_of_the_row_and_the_unit_of_the_axis() -> None:
    series = [{"key": "y", "label": "yours", "reason": "state"}, {"key": "z", "label": "sheet"}]
    rows: list[dict[str, object]] = [{"x": "naive", "y": 0.5}, {"x": "tiled", "state": "not written yet"}]
    texts = lines({"kind": "bar", "series": series, "y_scale": 1e9}, rows)
    assert {"500 M", "left out: sheet (not measured); yours at tiled (not written yet)"} <= set(texts)
