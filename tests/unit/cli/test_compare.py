from __future__ import annotations

import pytest

from tests.learning import Learning


def test_compare_of_an_exercise_uses_its_two_newest_good_runs(learning: Learning) -> None:
    _, *good_runs = [learning.record().id for _ in range(3)]
    learning.record(state="failed")
    learning.record("1.2")
    result = learning.types("compare", "1.1", "--json")
    assert result.document["labels"] == {run: run.rpartition("-")[2] for run in good_runs}
    assert f"the two newest good runs of 1.1: {' and '.join(good_runs)}" in result.err
    assert "1.2 has 1 good run, and a comparison needs two: runs that succeeded" in learning.types("compare", "1.2", code=2).err


@pytest.mark.parametrize("second", ["same", "other exercise", "unknown", "without metrics"])
def test_compare_of_runs_that_cannot_be_compared_is_refused(learning: Learning, second: str) -> None:
    run = learning.record().id
    if second == "same":
        code, second_run, words = 2, run, "two different runs"
    elif second == "other exercise":
        code, second_run, words = 2, learning.record("1.2").id, "different exercises: 1.1, 1.2"
    elif second == "unknown":
        code, second_run, words = 2, "20010101-000000-wombat", "there is no run"
    else:
        record = learning.record()
        (learning.folder(record) / "metrics.json").unlink()
        code, second_run, words = 3, record.id, "has no metrics"
    result = learning.types("compare", run, second_run, code=code)
    assert words in result.err
