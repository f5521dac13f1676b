"""The layout that 6.6 tries on the ranks at hand, earlier runs that it cites, and a plan that is no plan."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.unit.exercises.scripts import beside_the_script
from tests.unit.exercises.test_plans import FOLDER, plans

__all__ = ["plans"]  # the fixture


@pytest.fixture(scope="module")
def report(plans: ModuleType) -> ModuleType:
    assert plans is not None
    return beside_the_script(FOLDER, "plan_report")


@pytest.mark.parametrize(
    ("form", "ranks", "per_node", "expected"),
    [
        ((4, 1, 1), 8, 4, (8, 1, 1)),
        ((1, 4, 1), 8, 4, (1, 8, 1)),
        ((2, 1, 2), 8, 4, (4, 1, 2)),
        ((4, 8, 2), 8, 4, (2, 2, 2)),
        ((2, 8, 4), 2, 1, (1, 2, 1)),
        ((1, 1, 2), 2, 1, (2, 1, 1)),  # one rank a node: slices would lie on two
    ],
)
def test_shrink_fits_the_ranks_at_hand(
    plans: ModuleType, report: ModuleType, form: tuple[int, int, int], ranks: int, per_node: int, expected: tuple[int, int, int]
) -> None:
    small = report.shrink(plans.Plan(*form, 0, "all", 16, "bf16"), ranks, per_node, 16, lambda *_: True)
    assert (small.dp, small.pp, small.tp) == expected
    assert small.micro_batches >= small.pp
    assert 16 % (small.dp * small.micro_batches) == 0


def test_shrink_takes_no_layout_that_cannot_run(plans: ModuleType, report: ModuleType) -> None:
    plan = plans.Plan(4, 1, 1, 0, "none", 1, "bf16")
    assert report.shrink(plan, 8, 4, 16, lambda *_: False) is None
    assert report.shrink(plan, 8, 4, 16, lambda dp, *_: dp == 2).dp == 2


def test_read_plan_names_ranks_without_keys(plans: ModuleType) -> None:
    assert plans is not None
    file = beside_the_script(FOLDER, "plan_file").read_plan({"ranks": "4x1x1"})
    assert file.faults == ["ranks: 4x1x1 is not a mapping; write dp, pp and tp below it, each with its number"]
