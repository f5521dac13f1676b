"""Figures in the lessons of 9.1 and 9.2 are those of the course's own clock, counts and draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.course.locate import find_course
from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"
rounds = beside_the_script("shared", "rounds")
algorithms = beside_the_script(FOLDER, "algorithms")
solution = beside_the_script(f"{FOLDER}/solutions", "my_rounds")


def read_lesson(name: str) -> str:
    """Return a lesson in one line, without the breaks of its lines."""
    path: Path = find_course({}).modules / FOLDER / name
    return " ".join(path.read_text(encoding="utf-8").split())


COLLECTIVES, EXPERTS = read_lesson("lesson-2-collectives.md"), read_lesson("lesson-3-experts.md")


@pytest.mark.parametrize(("title", "size"), [("1 KiB", 1 << 10), ("16 MiB", 1 << 24)])
def test_times_of_eight_ranks_are_those_of_the_clock(title: str, size: int) -> None:
    link = rounds.Link(10.0, 4e6 / 50e9)  # in microseconds, for numbers of 4 bytes
    makers = [algorithms.ring, algorithms.doubling, solution.halving_doubling, algorithms.tree]
    times = [rounds.clock(make(8, size // 4), 1, link, link) for make in makers]
    assert f"| {title} | " + " | ".join(f"{time:,.0f}" for time in times) + " |" in COLLECTIVES


def test_numbers_that_cross_two_nodes_are_those_of_the_rounds() -> None:
    numbers = 960
    far = [[message._replace(source=_reverse(message.source), target=_reverse(message.target)) for message in messages]
           for messages in solution.halving_doubling(8, numbers)]  # fmt: skip
    for title, planned in (
        ("ring", algorithms.ring(8, numbers)),
        ("recursive doubling", algorithms.doubling(8, numbers)),
        ("halving, farthest first", far),
        ("halving, nearest first", solution.halving_doubling(8, numbers)),
    ):
        times = rounds.count_crossing(planned, 4) / (2 * numbers)
        assert f"| {title} | {times:g} |" in COLLECTIVES


def _reverse(rank: int) -> int:
    """Return the rank with its three bits in the opposite order, so that the nearest partner becomes the farthest."""
    return int(f"{rank:03b}"[::-1], 2)


@needs_torch
def test_bytes_and_limits_of_experts_are_those_of_the_draws() -> None:
    routing = beside_the_script(FOLDER, "routing")
    assert 96 * 2 * 3 // 4 * 32 * 8 == 36_864
    assert "36,864 bytes" in EXPERTS
    rows = {row["max_nodes"]: row for row in routing.list_limits((8, 4))}
    assert [round(rows[limit]["nodes_a_token"], 1) for limit in (8, 4)] == [4.7, 3.5], "as the explanation of 9.2 says"
    assert rows[4]["kb_a_token"] / rows[8]["kb_a_token"] == pytest.approx(0.74, abs=0.01)
