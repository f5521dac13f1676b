from __future__ import annotations

import pytest

from gpucourse.ui.tables import Paragraph, Table
from gpucourse.ui.views.measured import MAX_ROWS, measured_table
from tests.unit.ui.examples import EXERCISE

(TIMES,) = EXERCISE.tables


@pytest.mark.parametrize("metrics", [{}, {"rows": []}, {"rows": 5}, {"rows": {"n": 1}}, {"rows": [{"n": "a"}]}])
def test_measured_table_without_numbers_is_a_sentence(metrics: dict[str, object]) -> None:
    (block,) = measured_table(TIMES, metrics)
    assert isinstance(block, Paragraph)
    assert block.text.startswith("Times: not measured")


def test_measured_table_counts_rows_beyond_its_limit() -> None:
    table, note = measured_table(TIMES, {"rows": [{"n": 1, "ms": 1.0}] * (MAX_ROWS + 5)})
    assert isinstance(table, Table)
    assert (len(table.rows), table.total) == (MAX_ROWS, MAX_ROWS + 5)
    assert isinstance(note, Paragraph)
    assert note.text.startswith("and 5 more rows")
