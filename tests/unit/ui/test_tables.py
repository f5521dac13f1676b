from __future__ import annotations

from gpucourse.ui.tables import Cell, facts


def test_facts_leave_out_names_without_a_value() -> None:
    pairs = [("run", "abc"), ("error", ""), ("folder", None), ("state", Cell("", "bad"))]
    assert facts(pairs).pairs == [("run", "abc")]
