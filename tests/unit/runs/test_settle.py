from __future__ import annotations

from dataclasses import replace

from gpucourse.runs.connect import Connections
from gpucourse.runs.settle import collect_later, follow_on, settle
from gpucourse.workspace import runs
from gpucourse.workspace.lock import hold_lock
from tests.learning import Learning, deploy
from tests.unit.runs.test_finish import leave_run


def test_settle_marks_a_run_lost_whose_nodes_are_gone_unless_another_process_follows_it(learning: Learning) -> None:
    context, record = learning.context, learning.record(state="running", collected=False)
    with Connections(context) as connections:
        with hold_lock(runs.lock_of(context.paths, record.id), "logs"):
            assert settle(context, record, connections).state == "running"
        settled = settle(context, record, connections)
    assert (settled.state, settled.error, settled.collected) == ("lost", "its nodes are gone", True)
    assert runs.reread(context.paths, record) == settled


def test_collect_later_finishes_a_run_that_ended_unattended_and_then_reads_its_verdict(learning: Learning) -> None:
    deploy(learning)
    record, nodes = leave_run(learning)
    context = replace(learning.open_context(), make_transport=lambda _key: nodes)
    with Connections(context) as connections:
        first = follow_on(context, record, connections, limit_s=20.0)
        verbs = nodes.list_verbs("node0")
        second = follow_on(context, record, connections)
        assert collect_later(context, first.record, connections) == first.record, "no job of it is left"
    assert (first.record.state, first.verdict) == ("succeeded", second.verdict)
    assert nodes.list_verbs("node0") == verbs
