"""The choice of 9.6: jobs of puzzles, limits of memory, the steps of choices, and the file that holds one."""

from __future__ import annotations

import pytest

from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"
choice = beside_the_script(FOLDER, "overlap_choice")
prefetch = beside_the_script(FOLDER, "solutions/my_prefetch")


def list_rows(puzzle: int) -> list[dict[str, object]]:
    orders = {name: prefetch.order(choice.LAYERS, *way) for name, way in choice.ORDERS.items()}
    rows: list[dict[str, object]] = choice.list_rows(choice.make_job(puzzle), orders)
    return rows


def test_puzzles_differ_in_the_best_order_and_in_the_least_room() -> None:
    best = [list_rows(puzzle)[0] for puzzle in range(1, 40)]
    assert {"torch's default", "1 ahead in forward", "2 ahead in forward", "whole after forward"} <= {
        row["order"] for row in best
    }
    assert {2, 3, 4, choice.LAYERS} <= {row["room"] for row in best}


def test_list_rows_gives_the_shortest_step_and_then_the_least_room_first() -> None:
    rows = list_rows(3)
    assert [(row["order"], row["room"], row["end"]) for row in rows[:2]] == [
        ("1 ahead in forward", 3, 108_000),
        ("1 ahead in forward", 4, 108_000),
    ]
    assert all(row["room"] <= choice.make_job(3).memory for row in rows)


@pytest.mark.parametrize(
    ("order", "room", "problems"),
    [
        ("torch's default", 2, set()),
        ("torch's default", 1, {"ahead"}),
        ("2 ahead in backward", 2, {"ahead"}),
        ("1 ahead in forward", 5, {"memory"}),
        ("whole after forward", 4, {"whole"}),
        ("whole after forward", 8, {"memory"}),
    ],
)
def test_find_problems_names_each_limit_that_is_not_met(order: str, room: int, problems: set[str]) -> None:
    assert set(choice.find_problems(choice.make_job(3), choice.Choice(order, room))) == problems


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (["room"], "it holds no keys with values"),
        ({"order": "3 ahead"}, "order: 3 ahead is not one of torch's default"),
        ({"order": ["torch's default"]}, 'order: ["torch\'s default"] is not one of'),
        ({"room": True}, "room: True is not a whole number from 1 to 8"),
        ({"room": 9}, "room: 9 is not a whole number from 1 to 8"),
        ({"puzzle": 100}, "puzzle: 100 is not a whole number from 1 to 99"),
        ({"ahead": 1}, "ahead: there is no such key"),
    ],
)
def test_read_choice_names_the_fault(document: object, fault: str) -> None:
    assert choice.read_choice(document).faults[0].startswith(fault)


def test_read_choice_lists_empty_keys() -> None:
    empty = choice.read_choice({"puzzle": 3, "order": None, "room": ""})
    assert (empty.empty, empty.faults, empty.choice) == (["order", "room"], [], None)


def test_the_delivered_file_has_the_times_of_its_puzzle() -> None:
    text = (find_course({}).exercises / FOLDER / "my_overlap.yaml").read_text(encoding="utf-8")
    job = choice.make_job(3)
    for kind in ("gather", "forward", "reduce"):
        assert ", ".join(map(str, job.seconds[kind])) in text
    assert f"One issue takes {job.issue:,} µs" in text
    assert f"Memory has room for {job.memory} layers" in text
