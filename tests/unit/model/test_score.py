from __future__ import annotations

import pytest

from gpucourse.model.score import Piece, Signs, list_missing


@pytest.mark.parametrize(
    ("signs", "is_done"),
    [
        (Signs(ran=True), True),  # it has neither parts nor questions
        (Signs(ran=True, yours=True, answered=True), True),
        (Signs(ran=True, yours=False), False),
        (Signs(ran=True, answered=False), False),
        (Signs(ran=False, yours=True, answered=True), False),
    ],
)
def test_exercise_score_is_done_when_nothing_of_it_is_open(signs: Signs, is_done: bool) -> None:
    assert signs.is_done is is_done


def test_list_missing_names_a_note_that_exercises_share_once() -> None:
    pieces = [
        Piece(exercise=name, kind=kind, got=0, of=2, note=f"{kind} open: {word}", short=f"2 {kind} open")
        for name, word in (("3.1", "why"), ("3.2", "how"))
        for kind in ("parts", "answers")
    ]
    full_piece = Piece(exercise="3.3", kind="answers", got=2, of=2)
    assert list_missing([*pieces, full_piece]) == "3.1, 3.2: 2 parts open, 2 answers open"
    assert (
        list_missing([*pieces, full_piece], names=True)
        == "3.1: parts open: why; answers open: why; 3.2: parts open: how; answers open: how"
    )
