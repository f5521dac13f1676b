"""How a run ended, and its process groups compared with the planned ones."""

from __future__ import annotations

import re

import pytest

from gpucourse.model.record import NodeExit, RankExit, RunRecord, find_end_state, name_subjects
from tests.learning import METRICS, Learning
from tests.unit.ui.examples import record


def ends(*sizes: int | None, restart: int = 0) -> list[RankExit]:
    return [
        RankExit(node=f"node{rank}", rank=rank, code=0, at=1.0, restart=restart, group=size) for rank, size in enumerate(sizes)
    ]


def make_record(*sizes: int | None, launcher: str = "torchrun", state: str = "succeeded") -> RunRecord:
    return RunRecord(
        id="20260102-100000-lynx", exercise="3.1", module="3", stack="03-local", mode="local", launcher=launcher,
        state=state, created="2026-01-02T10:00:00+00:00", world_size=len(sizes), rank_exits=ends(*sizes),  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((2, 2), ""),
        ((None, None), ""),
        ((1,), ""),
        ((8, 8), ""),  # each rank started four processes
        ((3, 3), "2 ranks were planned as one process group, but they made 1 group of 3 ranks"),
        ((0, 0), "torch made no process group: 2 ranks worked alone, each in a world of one"),
        ((1, 1), "2 ranks were planned as one process group, but they made 2 groups of 1 rank"),
        ((2, 2, 2, 2), "4 ranks were planned as one process group, but they made 2 groups of 2 ranks"),
        ((3, 3, 3, 0), "4 ranks were planned as one process group, but they made none on 1 rank, 1 group of 3 ranks"),
    ],
)
def test_split_world_names_the_groups(sizes: tuple[int | None, ...], words: str) -> None:
    assert make_record(*sizes).split_world == words


@pytest.mark.parametrize(
    ("sizes", "count"), [((2, 2), 2), ((4, 4), 4), ((None, None), 2), ((1, 1), 2), ((3, 3), 2), ((0, 0), 2), ((64, 4), 2)]
)
def test_rank_count_is_the_group_when_each_rank_starts_as_many(sizes: tuple[int | None, ...], count: int) -> None:
    assert make_record(*sizes).rank_count == count


def test_rank_count_includes_the_ranks_that_the_planned_ranks_forked(learning: Learning) -> None:
    record = learning.record(metrics=METRICS, world_size=2, launcher="torchrun", rank_exits=ends(4, 4))
    output = learning.types("show", "1.1", "--run", record.id).out
    assert f"{record.id}, 4 ranks on 1 node" in output
    assert "planned" not in output


def test_runs_has_the_same_counts_on_the_screen_and_as_json(learning: Learning) -> None:
    node_exit = NodeExit(node="node0", code=1, seconds=3.25)
    forks = {"depth": 10, "ranks_per_node": 2}
    record = learning.record(world_size=2, launcher="torchrun", state="failed", parameters=forks, node_exits=[node_exit])
    (run,) = learning.types("runs", "--json").document["runs"]
    assert (run["world_size"], run["processes"], run["seconds"]) == (4, 2, 3.25)
    assert re.search(r"failed +4 +3\.25 s", learning.types("runs").out)
    message = learning.types("logs", record.id, "--rank", "3", code=2).err
    assert "process 1 forked it" in message
    assert f"gpucourse logs {record.id} --rank 1" in message


def test_split_world_is_empty_unless_torchrun_ended_well() -> None:
    assert make_record(0, 0, launcher="python").split_world == ""
    assert make_record(0, 0, state="failed").split_world == ""


def test_group_sizes_are_those_after_the_last_restart() -> None:
    record = make_record(1, 1)
    record.rank_exits += ends(2, 2, restart=1)
    assert (record.group_sizes, record.split_world) == ([2, 2], "")


def exit_of(code: int, reason: str = "exited") -> NodeExit:
    return NodeExit(node="node0", code=code, reason=reason)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("exits", "state"),
    [
        ([], "lost"),
        ([exit_of(0), exit_of(0)], "succeeded"),
        ([exit_of(0), exit_of(1)], "failed"),
        ([exit_of(1), exit_of(143, "cancelled")], "failed"),
        ([exit_of(143, "cancelled"), exit_of(143, "cancelled")], "cancelled"),
        ([exit_of(137, "timed_out"), exit_of(1)], "timed_out"),
        ([exit_of(255, "lost"), exit_of(1), exit_of(143, "cancelled")], "lost"),
    ],
)
def test_find_end_state_returns_the_weightiest_reason(exits: list[NodeExit], state: str) -> None:
    assert find_end_state(exits) == state


def test_name_subjects_tells_scripts_of_one_name_apart() -> None:
    scripts = {"1": "/home/me/a/train.py", "2": "/home/me/b/train.py", "3": "/home/me/eval.py"}
    records = [record(id=name, own_script=path) for name, path in scripts.items()]
    assert name_subjects([*records, record(id="4")]) == {"1": "a/train.py", "2": "b/train.py", "3": "eval.py", "4": "3.1"}
