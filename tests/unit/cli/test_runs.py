from __future__ import annotations

from tests.learning import Learning


def test_runs_of_an_exercise_leaves_out_the_others(learning: Learning) -> None:
    run = learning.record()
    learning.record("1.2")
    assert [item["id"] for item in learning.types("runs", "1.1", "--json").document["runs"]] == [run.id]
    assert len(learning.types("runs", "--json").document["runs"]) == 2
