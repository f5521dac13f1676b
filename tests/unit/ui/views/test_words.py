from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.ui.views.words import checks_cell, count_nodes, name_evidence_value, state_cell
from tests.unit.ui.examples import deployment, record


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("plan.world_size", "the planned world size"),
        ("metrics.floor_mib", "the run's floor"),
        ("max(metrics.rows.loss_after)", "the run's largest loss after"),
    ],
)
def test_name_evidence_value_is_words(expression: str, name: str) -> None:
    assert name_evidence_value(expression) == name


def test_state_cell_of_a_drill_has_the_words_of_its_result() -> None:
    drill = record(state="broken", drill=True)
    assert (state_cell(drill).text, checks_cell(drill).text) == ("drill", "– not found yet")
    assert checks_cell(replace(drill, verdict="passed")).text == "✓ found"
    assert checks_cell(replace(drill, repair=True, verdict="failed")).text == "– not repaired yet"
    assert checks_cell(replace(drill, repair=True, verdict="passed")).text == "✓ repaired"


def test_checks_cell_of_an_expected_failure_says_so() -> None:
    failed = record(verdict="failed", expected_red="wet")
    assert checks_cell(failed).text == "✗ failed"
    assert checks_cell(replace(failed, as_predicted=True)).text == "✓ failed as predicted"


def test_count_nodes_counts_the_head_separately() -> None:
    lab = deployment()
    assert count_nodes(2, lab) == "2"
    assert count_nodes(4, replace(lab, template="slurm-cluster")) == "3 + head"
