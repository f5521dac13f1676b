"""What docs/cost-and-safety.md says about money is what the program would say, and so is the syllabus of README.md."""

from __future__ import annotations

from tests import cost_table


def test_the_table_is_worked_out_from_the_manifests_and_the_shipped_prices() -> None:
    text = cost_table.PAGE.read_text(encoding="utf-8")
    assert cost_table.page_with(cost_table.table()) == text, "write it again: python -m tests.cost_table --write"


def test_the_syllabus_is_worked_out_from_the_manifests_and_the_rubric() -> None:
    text = cost_table.README.read_text(encoding="utf-8")
    made = cost_table.page_with(cost_table.syllabus(), cost_table.README)
    assert made == text, "write it again: python -m tests.cost_table --write"
