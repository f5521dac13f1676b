from __future__ import annotations

import pytest

from gpucourse.ui.tables import Column, facts, table


def test_table_refuses_a_row_that_does_not_fit() -> None:
    assert table(["node"], [["node0"]]).columns == (Column("node"),)
    with pytest.raises(ValueError, match="a row of 2 cells in a table of 1 columns"):
        table(["node"], [["node0", "ready"]])


def test_facts_leave_out_what_has_no_value() -> None:
    assert facts([("run", "abc"), ("error", ""), ("folder", None)]).pairs == (("run", "abc"),)
