"""The simulated jobs of 9.8: what is planted, who waits, and the parts that find it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"
pytestmark = needs_torch


@pytest.fixture(scope="module")
def jobs() -> ModuleType:
    return beside_the_script(FOLDER, "jobs")


def load_solution(name: str, folder: str) -> Any:
    path: Path = find_course({}).exercises / FOLDER / folder / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"solution_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_order_micro_batches_fills_then_alternates_then_empties(jobs: ModuleType) -> None:
    order = jobs.order_micro_batches(1, 3, 4)
    assert [kind[0] + str(number) for kind, number in order] == ["f0", "f1", "b0", "f2", "b1", "f3", "b2", "b3"]


def test_hang_without_a_fault_would_let_every_rank_finish(jobs: ModuleType) -> None:
    layout = jobs.Layout(3, 3, 3, 4)
    programs = [layout.list_program(d, p, t) for d in range(3) for p in range(3) for t in range(3)]
    records = jobs._run(programs, -1, -1, layout.list_members(), [0.0] * 4)
    assert all(entry["state"] == "completed" for record in records for entry in record)


@pytest.mark.parametrize(("layout", "dp"), [((32, 8, 8, 8), 1984), ((4, 3, 5, 3), 45)])
def test_hang_in_a_forward_leaves_nearly_all_ranks_in_dp(jobs: ModuleType, layout: tuple[int, ...], dp: int) -> None:
    job = jobs.hang(jobs.Layout(*layout), "stops", 1)
    tp = layout[2] - 1
    assert [job.count_waiting(where) for where in ("tp", "pp", "dp")] == [tp, layout[1] * layout[2] - tp - 1, dp]


@pytest.mark.parametrize("layout", [(3, 2, 3, 2), (4, 4, 4, 6), (5, 3, 8, 5)])
@pytest.mark.parametrize("fault", ["stops", "skips", "swaps"])
def test_hang_has_one_culprit_that_both_solutions_find(jobs: ModuleType, layout: tuple[int, ...], fault: str) -> None:
    for seed in range(6):
        job = jobs.hang(jobs.Layout(*layout), fault, seed, late=seed % 2 == 0)
        for folder in ("solutions", "solutions/other"):
            answer = load_solution("my_hang", folder).find_culprit(job.records, job.members)
            assert answer == (job.culprit, job.kind), (seed, folder)


@pytest.mark.parametrize("kind", ["gpu", "link", "data", "nobody"])
def test_slow_down_plants_what_both_solutions_find(jobs: ModuleType, kind: str) -> None:
    for seed in range(4):
        job = jobs.slow_down(jobs.Layout(8, 4, 4, 6), kind, seed, steps=12)
        for folder in ("solutions", "solutions/other"):
            assert load_solution("my_slow", folder).find_slow(job.seconds) == job.sick, (seed, folder)


def test_find_lost_percent_is_nothing_where_nobody_is_sick(jobs: ModuleType) -> None:
    layout = jobs.Layout(4, 3, 3, 4)
    assert jobs.find_lost_percent(layout, "nobody", 2) == 0
    assert jobs.find_lost_percent(layout, "data", 2) > 5
