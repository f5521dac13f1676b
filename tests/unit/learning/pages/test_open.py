from __future__ import annotations

from gpucourse.learning.pages.open_ import open_
from tests.learning import Learning


def test_open_reads_the_runs_of_each_exercise_beside_a_damaged_one(learning: Learning) -> None:
    record, own_run = learning.record("1.1"), learning.record("1.1", own_script="/home/me/train.py")
    damaged = learning.record("1.2")
    (learning.folder(damaged) / "run.json").write_text("{")
    content = open_(learning.context)
    assert [run.id for run in content.records] == [record.id, own_run.id]
    assert content.list_runs("1.1") == [record]
    assert len(content.damaged) == 1
    assert content.next_step is not None
