from __future__ import annotations

import pytest

from gpucourse.learning.pages.run_content import read_run
from gpucourse.learning.pages.side_by_side import (
    ComparedRow,
    ComparedValue,
    Spread,
    list_cells,
    list_values,
    put_side_by_side,
)
from gpucourse.model.manifest import MetricsColumn, MetricsTable
from tests.learning import METRICS, Learning


@pytest.mark.parametrize(
    ("after", "mark"),
    [
        (ComparedValue(text="12", number=12, measured=True, times=(Spread(12, 9.6, 14.4),)), "≈ +20 %"),
        (ComparedValue(text="20", number=20, measured=True, times=(Spread(20, 16, 24),)), "+100 %"),
        (ComparedValue(text="12", number=12, measured=True), "? +20 %"),
        (ComparedValue(text="12", number=12, times=(Spread(12, 9.6, 14.4),)), "+20 %"),
        (ComparedValue(text="many"), ""),
    ],
)
def test_list_differences_marks_spreads_that_overlap_or_are_unknown(after: ComparedValue, mark: str) -> None:
    before = ComparedValue(text="10", number=10, measured=True, times=(Spread(10, 8, 12),))
    row = ComparedRow(title="ms", values=(before, after))
    assert (row.differs, row.list_differences()) == (True, ["", mark])
    assert bool(row.list_marks()) == after.measured, "settings and counts have no mark, not even an empty one"


@pytest.mark.parametrize(("batch", "mark"), [(64, "≈ -9.09 %"), (48, "≈ -31.8 %"), (16, "-77.3 %")])
def test_list_differences_of_a_rate_has_the_spread_of_its_time(batch: int, mark: str) -> None:
    before, after = (
        ComparedValue(
            text=str(count / time), number=count / time, measured=True,
            times=(Spread(time, 0.8 * time, 1.2 * time),), counts={"batch": count, "ranks": 2},
        )
        for count, time in ((64, 10), (batch, 11))
    )  # fmt: skip
    assert ComparedRow(title="samples/s", values=(before, after)).list_differences() == ["", mark]


def test_list_values_and_put_side_by_side_have_every_value_that_a_run_has(learning: Learning) -> None:
    runs = [
        learning.record(metrics=METRICS | {"springs": [{"litres": 2.0}]}, parameters={"depth": 10}),
        learning.record(metrics=METRICS | {"springs": [{"litres": 3.0}, {"litres": 9.5}]}, parameters={"depth": 15}),
    ]
    groups = put_side_by_side([list_values(read_run(learning.context, run)) for run in runs])
    rows = {(group, row.title): row for group in groups for row in groups[group]}
    assert [value and value.text for value in rows["Springs", "row 2 · litres"].values] == [None, "9.5"]
    assert rows["Springs", "row 1 · litres"].list_differences() == ["", "? +50 %"]
    assert rows["started", "depth"].list_differences() == ["", "+50 %"]
    assert not rows["checks", "It is wet"].differs


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        (
            [("a", "warm"), ("b", "warm")],
            ["size 2,048, a · kind", "size 2,048, a · ms", "size 2,048, b · kind", "size 2,048, b · ms"],
        ),
        (
            [("a", "cold"), ("a", "warm"), ("b", "warm")],
            ["size 2,048, a, cold · ms", "size 2,048, a, warm · ms", "size 2,048, b, warm · ms"],
        ),
        ([("a", "b")] * 2, [f"size 2,048{number} · {title}" for number in ("", " (2)") for title in ("device", "kind", "ms")]),
    ],
    ids=["two-columns", "three-columns", "same-texts"],
)
def test_list_cells_has_a_unique_name_for_each_row(kinds: list[tuple[str, str]], names: list[str]) -> None:
    columns = [MetricsColumn(key=key, title=key) for key in ("size", "device", "kind", "ms")]
    metrics = {"rows": [{"size": 2048, "device": device, "kind": kind, "ms": 1.0} for device, kind in kinds]}
    cells = list_cells(MetricsTable(title="Times", rows="metrics.rows", columns=tuple(columns)), metrics)
    assert [name for name, _ in cells] == names


def test_list_cells_names_rows_by_whole_numbers_and_compares_no_identity() -> None:
    columns = tuple(MetricsColumn(key=key, title=key) for key in ("collective", "bytes", "ms", "samples", "pid"))
    rows = [{"collective": "AllReduce", "bytes": size, "ms": 1.0, "samples": size, "pid": 4711} for size in (4, 1024)]
    cells = dict(list_cells(MetricsTable(title="Times", rows="metrics.rows", columns=columns), {"rows": rows}))
    assert list(cells)[:2] == ["AllReduce, bytes 4 · ms", "AllReduce, bytes 4 · samples"]
    assert cells["AllReduce, bytes 1,024 · pid"] == ComparedValue(text="4,711")
