from __future__ import annotations

import json

from tests.learning import Learning


def test_document_of_a_run_is_not_the_stored_record(learning: Learning) -> None:
    record = learning.record()
    [run] = learning.types("runs", "--json").document["runs"]
    stored = json.loads((learning.folder(record) / "run.json").read_text())
    assert (run["id"], run["verdict"], run["detail"]) == (record.id, "passed", "")
    assert {"outputs", "rank_exits", "phases_s", "full_logs", "silence_s"} <= set(stored) - set(run)
