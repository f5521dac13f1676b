"""The layout that 6.6 tries on the ranks at hand, earlier runs that it cites, and a plan that is no plan."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "06-training-at-scale"


@pytest.fixture(scope="module")
def plans() -> Iterator[ModuleType]:
    place = str(find_course({}).exercises / FOLDER)
    sys.path.append(place)
    yield beside_the_script(FOLDER, "plans")
    sys.path.remove(place)


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


def test_read_earlier_leaves_older_runs_out(report: ModuleType, tmp_path: Path) -> None:
    stage = {
        "stage": 3,
        "weights_per_parameter": 1,
        "gradients_per_parameter": 1,
        "moments_per_parameter": 2,
        "sent_bytes": 900,
    }
    runs = {"6.2-a": {"parameters": 100, "stages": [stage]}, "6.3-b": {"layouts": [{"layout": "2x1x1"}]}}
    for name, metrics in runs.items():
        (tmp_path / f"earlier-{name}.json").write_text(json.dumps(metrics), encoding="utf-8")
    (row,) = report.read_earlier(tmp_path)
    assert (row["exercise"], row["run"]) == ("6.2", "a")
    assert row["says"].endswith("stage 3 4.0 and 9.0")


def test_read_plan_names_ranks_without_keys(plans: ModuleType) -> None:
    assert plans is not None
    file = beside_the_script(FOLDER, "plan_file").read_plan({"ranks": "4x1x1"})
    assert file.faults == ["ranks: 4x1x1 is not a mapping; write dp, pp and tp below it, each with its number"]
