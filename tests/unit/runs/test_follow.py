from __future__ import annotations

import json

import pytest

from gpucourse.context import Context
from gpucourse.errors import UnreachableError
from gpucourse.model.event import SilentRanks
from gpucourse.model.slurm import SlurmRun
from gpucourse.remote.fleet import Fleet
from gpucourse.runs import follow
from gpucourse.runs.follow import conclude, find_silent_ranks, follow_to_end
from gpucourse.workspace import runs
from tests.learning import Learning
from tests.unit.labs.aws.fakes import fleet_of, make_completed, node
from tests.unit.remote.agent_link import make_nodes
from tests.unit.runs.test_diagnose import make_record
from tests.unit.runs.test_finish import LOG, NODE, Answering, leave_run
from tests.unit.ui.examples import record


def test_find_silent_ranks_gives_planned_ranks_whose_log_is_empty(context: Context) -> None:
    record = make_record()
    files = runs.files_of(context.paths, record)
    assert find_silent_ranks(record, files) == SilentRanks(ranks={}), "nothing was planned"
    files.logs.mkdir(parents=True)
    commands = [{"node": {"name": f"node{number}"}, "ranks": [2 * number, 2 * number + 1]} for number in range(2)]
    files.plan.write_text(json.dumps({"commands": commands}))
    files.rank_log("node0", 0).write_text("hello\n")
    files.rank_log("node0", 1).touch()
    files.rank_log("node1", 3).symlink_to("nowhere")
    assert find_silent_ranks(record, files) == SilentRanks(ranks={"node0": [1], "node1": [2]})
    record.slurm = SlurmRun(partition="gpu", nodes=1, gpus=0)
    assert find_silent_ranks(record, files) == SilentRanks(ranks={}), "a job that waits in the queue is silent, and rightly so"


def test_follow_to_end_notes_how_the_run_ended_and_finishes_it(learning: Learning) -> None:
    context = learning.open_context()
    record, nodes = leave_run(learning)
    with Fleet(nodes, make_nodes(1)) as fleet:
        outcome = follow_to_end(context, fleet, record, limit_s=20.0)
    assert outcome.verdict is not None
    assert [(end.code, end.seconds) for end in record.node_exits] == [(0, 1.5)]
    assert [(end.rank, end.code) for end in record.rank_exits] == [(0, 0)]
    assert (record.state, record.ended) == ("succeeded", "2026-01-31T14:25:02+00:00"), "when its last node did"
    assert runs.files_of(context.paths, record).rank_log("node0", 0).read_bytes() == LOG


def test_conclude_says_how_to_collect_what_a_node_did_not_send(learning: Learning) -> None:
    record, _ = leave_run(learning)
    with Fleet(Answering(), [NODE]) as fleet, pytest.raises(UnreachableError, match="not all of its outputs") as caught:
        conclude(learning.open_context(), fleet, record)
    assert caught.value.hint.startswith(f"gpucourse logs {record.id} collects the rest; gpucourse destroy 1 --discard")
    assert runs.reread(learning.context.paths, record).state == "collecting"


def test_give_up_records_why_a_run_did_not_start(context: Context) -> None:
    run = record(state="starting", nodes=["node0"])
    runs.save(context.paths, run)
    answer = make_completed('{"state": "ended", "killed": 1}')
    follow.give_up(context.paths, fleet_of(lambda *_: answer, node("node0")), run, "failed", "node1 cannot start")
    stored_run = runs.reread(context.paths, run)
    assert (stored_run.state, stored_run.error, stored_run.collected) == ("failed", "node1 cannot start", True)
