from __future__ import annotations

import pytest

from tests.learning import Learning


def test_compare_of_runs_with_equal_settings_labels_them_by_their_word(learning: Learning) -> None:
    runs = [learning.record().id for _ in range(2)]
    document = learning.types("compare", *runs, "--json").document
    assert document["labels"] == {run: run.rsplit("-", 1)[-1] for run in runs}


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
