"""The clock of FSDP in 9.6: queues, room, exposed time, formulas, and the figures of the lesson."""

from __future__ import annotations

import pytest

from gpucourse.course.catalog import load
from gpucourse.course.locate import find_course
from tests.unit.exercises.scripts import beside_the_script

FOLDER = "09-frontier-training"
clock = beside_the_script(FOLDER, "fsdp_clock")
SECONDS = {"gather": [2] * 4, "forward": [3] * 4, "backward": [6] * 4, "reduce": [2] * 4}


def list_forward(layers: int) -> list[tuple[str, int]]:
    return [issue for layer in range(layers) for issue in (("gather", layer), ("forward", layer), ("free", layer))]


@pytest.mark.parametrize(("gather", "forward"), [(2, 1), (1, 2), (3, 3)])
@pytest.mark.parametrize("room", [1, 2, 5])
def test_simulate_step_of_equal_layers_ends_by_the_formula(gather: int, forward: int, room: int) -> None:
    spans = clock.simulate_step(list_forward(8), {"gather": [gather] * 8, "forward": [forward] * 8}, room)
    exposure = clock.measure_exposure(list_forward(8), spans)
    assert exposure.end == clock.predict_forward(8, gather, forward, room)
    assert exposure.whole_at_once <= room


def test_simulate_step_lets_a_gather_run_beside_computing_and_reducing() -> None:
    issues = [
        ("gather", 1),
        ("gather", 0),
        ("backward", 1),
        ("free", 1),
        ("reduce", 1),
        ("backward", 0),
        ("free", 0),
        ("reduce", 0),
    ]
    spans = clock.simulate_step(issues, SECONDS, 2)
    assert spans == [(0, 2), (2, 4), (2, 8), (8, 8), (8, 10), (8, 14), (14, 14), (14, 16)]
    assert clock.measure_exposure(issues, spans) == (16, 4, 2)


def test_simulate_step_begins_nothing_before_the_processor_has_issued_it() -> None:
    assert clock.simulate_step(list_forward(1), SECONDS, 1, 10) == [(10, 12), (20, 23), (23, 23)]


def test_simulate_step_refuses_orders_that_cannot_run() -> None:
    with pytest.raises(ValueError, match="forward 0 has no weights"):
        clock.simulate_step([("forward", 0)], SECONDS, 1)
    with pytest.raises(ValueError, match="gather 2 never has room: only 0 layers are freed"):
        clock.simulate_step([("gather", 0), ("gather", 1), ("gather", 2)], SECONDS, 2)
    with pytest.raises(ValueError, match="no queue can go on"):
        clock.simulate_step(
            [("gather", 1), ("gather", 0), ("forward", 0), ("free", 0), ("forward", 1), ("free", 1)], SECONDS, 1
        )


def test_figures_of_the_lesson_are_those_of_the_clock() -> None:
    path = find_course({}).modules / FOLDER / "lesson-7-overlap.md"
    lesson = " ".join(path.read_text(encoding="utf-8").split())
    exposed = {}
    for gather, forward in ((2, 1), (1, 2)):
        spans = clock.simulate_step(list_forward(8), {"gather": [gather] * 8, "forward": [forward] * 8}, 2)
        exposed[gather] = clock.measure_exposure(list_forward(8), spans)
    assert (exposed[2].end, exposed[1].end) == (17, 17)
    assert clock.predict_forward(8, 2, 1, 1) == 24
    assert f"a pass takes 24 with room for one and {exposed[2].end} with room for two" in lesson
    uneven = {"gather": [1, 1, 6, 1], "forward": [4, 4, 1, 1]}
    ends = [
        clock.measure_exposure(list_forward(4), clock.simulate_step(list_forward(4), uneven, room)).end for room in (2, 3, 4)
    ]
    assert ends == [13, 11, 11]
    questions = {question.id: question for question in load(find_course({})).exercise("9.6")[1].questions}
    assert questions["long-gather"].value == ends[0] - ends[1]
    fewer = clock.predict_forward(32, 3, 8 * 0.5, 2) / clock.predict_forward(32, 3, 4 * 0.5, 2)
    assert questions["half-the-batch"].value == pytest.approx(fewer, abs=0.01)
    assert questions["two-times-17"].value == exposed[2].exposed - exposed[1].exposed
