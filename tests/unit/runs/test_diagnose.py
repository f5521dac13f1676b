"""The coach's input for a run whose ranks had several lives: only the last one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpucourse.context import Context
from gpucourse.model.diagnosis import Diagnosis
from gpucourse.model.record import NodeExit, RankExit, RunRecord
from gpucourse.runs.diagnose import diagnose
from gpucourse.workspace import runs

FIRST_LIFE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""
SECOND_LIFE = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
FileNotFoundError: [Errno 2] No such file or directory: 'step_00005/state.pt'
"""


FAILED = RankExit(node="node0", rank=0, code=1, at=5.0)


def make_record(**changes: object) -> RunRecord:
    rank_exit = RankExit(node="node0", rank=0, code=1, at=9.0, restart=1)
    record = RunRecord(
        id="otter", exercise="6.5", module="6", stack="06-local", mode="local", launcher="torchrun", state="failed",
        created="2026-01-01T00:00:00Z", nodes=["node0"], world_size=1, restarts=1, max_restarts=1,
        node_exits=[NodeExit(node="node0", code=1)], first_failure=rank_exit,
        rank_exits=[FAILED, rank_exit],
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def diagnose_log(context: Context, record: RunRecord, log: str) -> list[Diagnosis]:
    """Store a log of rank 0 and return the diagnoses of the run."""
    path = runs.files_of(context.paths, record).rank_log("node0", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log)
    return diagnose(context.paths, record)


@pytest.mark.parametrize(
    ("changes", "log", "titles"),
    [
        ({}, f"{FIRST_LIFE}--- restart 1 ---\n{SECOND_LIFE}", ["A file is missing on the node"]),
        ({"restarts": 0, "max_restarts": 0}, f"{FIRST_LIFE}--- restart 1 ---\n", ["Out of memory"]),
        (
            {"state": "succeeded", "node_exits": [NodeExit(node="node0", code=0)], "first_failure": None},
            "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer\n--- restart 1 ---\ndone\n",
            [],
        ),
    ],
    ids=["repaired by a restart", "no restarts", "ended well"],
)
def test_diagnose_reads_the_last_life_only(context: Context, changes: dict[str, object], log: str, titles: list[str]) -> None:
    assert [diagnosis.title for diagnosis in diagnose_log(context, make_record(**changes), log)] == titles


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ({"own_script": "/home/me/my train.py"}, "--script '/home/me/my train.py'"),
        ({"own_script": "/home/me/pkg/train.py", "own_module": "pkg.train"}, "--module pkg.train"),
    ],
)
def test_diagnose_names_a_script_of_the_learner_so_that_it_can_be_typed(
    context: Context, script: dict[str, object], words: str
) -> None:
    record = make_record(place="scripts/train.py", restarts=0, max_restarts=0, rank_exits=[FAILED], **script)
    (diagnosis,) = diagnose_log(context, record, FIRST_LIFE)
    assert diagnosis.next.startswith(f"gpucourse run {words} with a smaller batch_size")
