"""The choice of 9.4: jobs of puzzles, which schedules fit them, the file that holds a choice, and the figures of the lesson."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"
pieces = beside_the_script("shared", "pieces")
schedules = beside_the_script(FOLDER, "schedules")
choice = beside_the_script(FOLDER, "pipeline_choice")
file = beside_the_script(FOLDER, "pipeline_file")


@pytest.fixture(scope="module")
def lesson() -> str:
    path: Path = find_course({}).modules / FOLDER / "lesson-5-pipelines.md"
    return " ".join(path.read_text(encoding="utf-8").split())


@pytest.mark.parametrize("puzzles", [range(10, 100, 10), pytest.param(range(1, 100), marks=pytest.mark.slow)])
def test_find_best_fits_every_puzzle_and_most_schedules_are_best_somewhere(puzzles: range) -> None:
    best = [choice.find_best(choice.list_rows(choice.make_job(puzzle)))["schedule"] for puzzle in puzzles]
    assert {"1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"} <= set(best)


def test_make_row_names_each_limit_that_is_not_met() -> None:
    job = choice.Job(8, 32, 56, pieces.Times(10, 12, 8, 26), memory=8, copies=1, messages=1, splits=False)
    problems = {row["label"]: set(row["problems"]) for row in choice.list_rows(job)}
    assert problems == {
        "gpipe": {"memory"}, "1f1b": set(), "interleaved, 2 stages": {"layers"}, "interleaved, 4 stages": {"layers"},
        "zb-h1": {"split"}, "zb-v": {"layers"}, "dualpipe": {"memory", "copies", "split"},
    }  # fmt: skip


def test_list_rows_counts_the_order_of_the_learner_as_it_counts_the_others() -> None:
    job = choice.Job(4, 8, 16, pieces.Times(10, 12, 8), memory=8)
    own = choice.list_rows(job, schedules.order_1f1b(4, 8))[-1]
    row = choice.make_row(job, choice.Choice("1f1b", 1))
    assert own["label"] == "yours"
    assert {key: own[key] for key in ("end", "bubble", "held", "messages_times")} == {
        key: row[key] for key in ("end", "bubble", "held", "messages_times")
    }


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (["gpipe"], "it holds no keys with values"),
        ({"schedule": "zigzag"}, "schedule: zigzag is not one of gpipe"),
        ({"schedule": ["gpipe"]}, "schedule: ['gpipe'] is not one of"),
        ({"chunks": True}, "chunks: True is not one of 1, 2, 4"),
        ({"schedule": "zb-v", "chunks": 1}, "chunks: a rank of zb-v has 2 stages, not 1"),
        ({"puzzle": 100}, "puzzle: 100 is not a whole number from 1 to 99"),
        ({"reasons": 5}, "reasons: 5 is not text"),
        ({"stages": 4}, "stages: there is no such key"),
    ],
)
def test_read_pipeline_names_the_fault(document: object, fault: str) -> None:
    assert file.read_pipeline(document).faults[0].startswith(fault)


def test_read_pipeline_lists_empty_keys() -> None:
    empty = file.read_pipeline({"puzzle": 1, "schedule": None, "reasons": ""})
    assert (empty.empty, empty.faults, empty.choice) == (["schedule", "chunks", "reasons"], [], None)


def test_figures_of_the_lesson_are_those_of_the_clock(lesson: str) -> None:
    equal, unequal = pieces.Times(1, 1, 1), pieces.Times(10, 12, 8)
    one = pieces.simulate(schedules.order_1f1b(4, 8), 4, equal.of)
    assert (one.end, one.bubble) == (33, 9)
    assert "Each rank has 24 units with work, and 9 without" in lesson
    assert 24 + pieces.predict_bubble_time("zb-h1", 4, equal) == 27
    assert "4 stages and 8 micro-batches take 27 units instead of 33" in lesson
    assert round(15 / (32 + 15), 2) == 0.32, "idle for a third, as the lesson begins"
    bubbles = [pieces.simulate(schedules.order_dual_pipe(p, 2 * p), p, unequal.of).bubble / (p // 2 - 1) for p in (4, 8)]
    assert bubbles == [24, 24]
    assert pieces.predict_bubble_time("dualpipe", 4, unequal) == 26
    questions = {question.id: question for question in load(find_course({})).exercise("9.4")[1].questions}
    pair = 147 / (16 / 2 - 1) - (12 + 8) + 3 * 8
    assert questions["pair-saves"].value == 10 + 12 + 8 - pair
    assert pieces.predict_bubble_time("dualpipe", 16, pieces.Times(10, 12, 8, 25)) == 147
    assert "the bubble is (p/2 - 1) · 24 on the clock and (p/2 - 1) · 26 by the formula" in lesson


def test_the_row_of_zb_h1_is_that_of_its_solution() -> None:
    solution = beside_the_script(FOLDER, "solutions/my_order")
    job = choice.make_job(1)
    orders = [[(pieces.Piece(kind, stage, number),) for kind, number in solution.order_of_stage(stage, 8, 32)]
              for stage in range(8)]  # fmt: skip
    own, row = choice.list_rows(job, orders)[-1], choice.make_row(job, choice.Choice("zb-h1", 1))
    assert [own[key] for key in ("end", "bubble", "held", "step")] == [row[key] for key in ("end", "bubble", "held", "step")]
