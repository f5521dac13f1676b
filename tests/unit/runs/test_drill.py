"""Diagnoses of an injected fault: a hint for a wrong one, the coach's words for the right one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from gpucourse.context import Context
from gpucourse.errors import ExerciseFailed, MissingError, UsageError
from gpucourse.launch import drill as launch_drill
from gpucourse.learning.next_ import find_next_step
from gpucourse.model.drill import How, InjectedFault
from gpucourse.model.record import NodeExit, RankExit, RunRecord
from gpucourse.runs import drill
from gpucourse.runs.drill import judge_diagnosis, open_drill
from gpucourse.runs.resolve import RunRequest
from gpucourse.runs.run import RunResult
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record

RUN = "20260101-000000-otter"


def break_run(context: Context, fault: How, rank: int | None = None) -> None:
    """Store an ended run of 3.2 with this fault."""
    rank_exit = RankExit(node="node1", rank=1, code=137, at=1.0)
    record = RunRecord(
        id=RUN, exercise="3.2", module="3", stack="03-local", mode="local", launcher="torchrun", state="broken", drill=True,
        created="2026-01-01T00:00:00+00:00", nodes=["node0", "node1"], world_size=2, first_failure=rank_exit,
        rank_exits=[RankExit(node="node0", rank=0, code=143, at=2.0), rank_exit],
        node_exits=[NodeExit(node="node0", code=1), NodeExit(node="node1", code=1)],
    )  # fmt: skip
    files = runs.files_of(context.paths, record)
    files.logs.mkdir(parents=True)
    files.rank_log("node1", 1).touch()
    runs.save(context.paths, record)
    write_record(context.paths.drill(RUN), InjectedFault(run=RUN, exercise="3.2", how=fault, rank=rank))


def test_open_drill_is_open_until_it_is_diagnosed(context: Context) -> None:
    assert open_drill(context.paths, "3.2") is None
    break_run(context, "kill-rank", rank=1)
    assert find_next_step(context).what.endswith("To leave the drill: gpucourse run 3.2")
    hints = []
    for fault_name, rank in (("block-port", None), ("kill-rank", None), ("kill-rank", 0)):
        record, verdict = judge_diagnosis(context, "3.2", fault_name, rank)
        assert (verdict.verdict, record.diagnoses) == ("failed", [])
        hints.append(verdict.checks[-1].hint)
        drill = open_drill(context.paths, "3.2")
        assert drill is not None
        assert drill.id == RUN
    assert len(set(hints)) == 3, "each hint says more"
    assert hints[1].startswith("Name it with --rank.")
    record, verdict = judge_diagnosis(context, "3.2", "kill-rank", 1)
    assert verdict.verdict == "passed"
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in record.diagnoses] == [("rank-killed", [1])]
    assert open_drill(context.paths, "3.2") is None
    assert judge_diagnosis(context, "3.2", "block-port", None)[1].verdict == "failed"
    assert runs.find(context.paths, RUN).verdict == "passed", "the fault stays found"


@pytest.mark.parametrize(
    ("fault", "node_exit", "takes_effect"),
    [
        ("kill-rank", NodeExit(node="node0", code=0), False),
        ("slow-rank", NodeExit(node="node0", code=143, reason="timed_out"), True),
    ],
)
def test_break_exercise_leaves_a_drill_only_if_its_fault_took_effect(
    context: Context, monkeypatch: pytest.MonkeyPatch, fault: How, node_exit: NodeExit, takes_effect: bool
) -> None:
    def run_drill(_context: Context, _resolved: object, *, inject_faults: Callable[..., object], **_: object) -> RunResult:
        inject_faults(SimpleNamespace(run_id=RUN, exercise="3.2", world_size=2))
        break_run(context, fault, rank=0)
        record = runs.find(context.paths, RUN)
        record.rank_exits, record.node_exits = [], [node_exit]
        return RunResult(record=record)

    monkeypatch.setattr(drill, "resolve", lambda *_: None)
    monkeypatch.setattr(drill, "run", run_drill)
    monkeypatch.setattr(launch_drill, "prepare_drill", lambda plan, _: plan)
    monkeypatch.setattr(launch_drill, "plan_faults", lambda *_, after_s: {})
    with nullcontext() if takes_effect else pytest.raises(ExerciseFailed, match="had no effect"):
        drill.break_exercise(context, RunRequest(exercise="3.2"), fault)
    assert (open_drill(context.paths, "3.2") is not None) == takes_effect
    assert ("diagnosis" in find_next_step(context).command) == takes_effect
    assert runs.find(context.paths, RUN).drill == takes_effect


def test_judge_diagnosis_explains_a_slow_rank_though_its_run_ended_well(context: Context) -> None:
    break_run(context, "slow-rank", rank=1)
    assert f"gpucourse logs {RUN} --times" in judge_diagnosis(context, "3.2", "kill-rank", 1)[1].checks[0].hint
    record, _ = judge_diagnosis(context, "3.2", "slow-rank", 1)
    assert [(diagnosis.symptom, diagnosis.ranks) for diagnosis in record.diagnoses] == [("slow-rank", [1])]


def test_judge_diagnosis_refuses_one_without_a_drill_or_of_a_rank_that_is_not_there(context: Context) -> None:
    with pytest.raises(MissingError, match=r"there is no drill of 3\.2 to diagnose"):
        judge_diagnosis(context, "3.2", "kill-rank", None)
    break_run(context, "block-port")
    with pytest.raises(UsageError, match=r"--rank 7: run .* has ranks 0 to 1"):
        judge_diagnosis(context, "3.2", "kill-rank", 7)
