from __future__ import annotations

from dataclasses import replace

from gpucourse.runs.settle import list_settled_runs
from tests.learning import Learning, deploy
from tests.unit.runs.test_connect import SilentNodes


def test_list_settled_runs_has_a_reason_for_one_whose_nodes_are_silent_and_for_one_that_cannot_be_read(
    learning: Learning,
) -> None:
    deploy(learning)
    finished_run, silent_run, damaged = learning.record(), learning.record(state="running", collected=False), learning.record()
    (learning.folder(damaged) / "run.json").write_text("{")
    listing, errors = list_settled_runs(replace(learning.context, make_transport=lambda _key: SilentNodes()))
    assert [(item.record.id, item.record.state, item.detail) for item in listing] == [
        (finished_run.id, "succeeded", ""),
        (silent_run.id, "running", "node0 does not answer"),
    ]
    assert [damaged.id in error.what for error in errors] == [True]
