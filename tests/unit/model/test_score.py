from __future__ import annotations

import pytest

from gpucourse.model.score import Signs


@pytest.mark.parametrize(
    ("signs", "done"),
    [
        (Signs(ran=True), True),  # it has neither parts nor questions
        (Signs(ran=True, yours=True, answered=True), True),
        (Signs(ran=True, yours=False), False),
        (Signs(ran=True, answered=False), False),
        (Signs(ran=False, yours=True, answered=True), False),
    ],
)
def test_exercise_is_done_when_nothing_of_it_is_open(signs: Signs, done: bool) -> None:
    assert signs.is_done is done
