"""What 9.8 reads in the words of torch's analyser of flight recorders."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.system.exercising import needs_torch
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_torch


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    return beside_the_script("09-frontier-training", "recorder")


def blame(*ranks: int) -> str:
    """Return lines as torch 2.13 writes them."""
    return "\n".join(f"Culprit rank {rank}; Error type: COLLECTIVE_TYPE_MISMATCH, all_reduce != broadcast" for rank in ranks)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (blame(3), [3]),
        (blame(0, 1, 2), [3]),  # the analyser read rank 3 first, and compared the others with it
        ("joined but not: missing ranks: {2}", [2]),
        ("all is well", None),
        (None, None),
    ],
    ids=["culprit", "all others", "missing", "none", "no analyser"],
)
def test_find_blamed_does_not_depend_on_the_rank_that_is_read_first(
    recorder: ModuleType, text: str | None, ranks: list[int] | None
) -> None:
    assert recorder.find_blamed(text, 4) == ranks
