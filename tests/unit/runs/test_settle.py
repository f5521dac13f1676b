from __future__ import annotations

from gpucourse.runs.connect import Connections
from gpucourse.runs.settle import settle
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from tests.learning import Learning


def test_settle_marks_a_run_lost_whose_nodes_are_gone_unless_another_process_follows_it(learning: Learning) -> None:
    context, record = learning.context, learning.record(state="running", collected=False)
    with Connections(context) as connections:
        with hold_lock(runs.lock_of(context.paths, record.id), "logs"):
            assert settle(context, record, connections).state == "running"
        settled = settle(context, record, connections)
    assert (settled.state, settled.error, settled.collected) == ("lost", "its nodes are gone", True)
    assert runs.reread(context.paths, record) == settled
