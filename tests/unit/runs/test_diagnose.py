"""What the coach is shown of a run whose ranks had several lives: the last one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.model.event import SilentRanks
from gpucourse.model.record import NodeExit, RankExit, RunRecord
from gpucourse.model.slurm import SlurmRun
from gpucourse.runs.diagnose import diagnose
from gpucourse.runs.follow import find_silent_ranks
from gpucourse.workspace import runs
from gpucourse.workspace.locate import open_workspace

FIRST_LIFE = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""
SECOND_LIFE = """Traceback (most recent call last):
  File "train.py", line 9, in <module>
FileNotFoundError: [Errno 2] No such file or directory: 'step_00005/state.pt'
"""


@pytest.fixture
def context(tmp_path: Path) -> Context:
    folders = CourseFolders(tmp_path, tmp_path, tmp_path)
    return Context(workspace=open_workspace(tmp_path / "w"), folders=folders, environ={})


def make_record(**changes: object) -> RunRecord:
    failed = RankExit(node="node0", rank=0, code=1, at=9.0, restart=1)
    record = RunRecord(
        id="otter", exercise="6.5", module="6", stack="06-local", mode="local", launcher="torchrun", state="failed",
        created="2026-01-01T00:00:00Z", nodes=["node0"], world_size=1, restarts=1, max_restarts=1,
        node_exits=[NodeExit(node="node0", code=1)], first_failure=failed,
        rank_exits=[RankExit(node="node0", rank=0, code=1, at=5.0), failed],
    )  # fmt: skip
    return replace(record, **changes)  # type: ignore[arg-type]


def titles(context: Context, record: RunRecord, log: str) -> list[str]:
    path = runs.files_of(context.paths, record).rank_log("node0", 0)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(log)
    return [diagnosis.title for diagnosis in diagnose(context, record)]


def test_an_earlier_life_that_a_restart_repaired_is_no_cause(context: Context) -> None:
    both = f"{FIRST_LIFE}--- restart 1 ---\n{SECOND_LIFE}"
    assert titles(context, make_record(), both) == ["A file is missing on the node"]


def test_a_run_without_restarts_is_read_whole(context: Context) -> None:
    record = make_record(restarts=0, max_restarts=0)
    assert titles(context, record, f"{FIRST_LIFE}--- restart 1 ---\n") == ["Out of memory"]


def test_a_planned_crash_leads_to_no_diagnosis_once_the_run_has_ended_well(context: Context) -> None:
    lost = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:31337"
    well = make_record(state="succeeded", node_exits=[NodeExit(node="node0", code=0)], first_failure=None)
    assert titles(context, well, f"{lost}\n--- restart 1 ---\ndone\n") == []


def test_advice_about_an_own_script_names_that_script(context: Context) -> None:
    record = make_record(own_script="/home/me/my train.py", place="scripts/my_train.py", restarts=0, max_restarts=0)
    path = runs.files_of(context.paths, record).rank_log("node0", 0)
    path.parent.mkdir(parents=True)
    path.write_text(FIRST_LIFE)
    (diagnosis,) = diagnose(context, replace(record, rank_exits=[RankExit(node="node0", rank=0, code=1, at=5.0)]))
    assert diagnosis.next.startswith("gpucourse run --script 'my train.py' with a smaller batch_size")


@pytest.mark.parametrize(
    ("here", "sent", "advice"),
    [
        ("", (), "--with 'my code' uploads the whole folder of the checkout at once; or upload it: --with PATH"),
        ("my code", (), "--with . uploads the whole folder of the checkout at once; or upload it: --with PATH"),
        ("my code", ("train.py", "conf.yaml"), "upload it: --with PATH"),
        ("no checkout", (), "upload it: --with PATH"),
    ],
)
def test_a_missing_file_of_a_checkout_suggests_the_whole_folder(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, sent: tuple[str, ...], advice: str
) -> None:
    folder = tmp_path / ("no checkout" if here == "no checkout" else "my code")
    (folder / (".git" if folder.name == "my code" else "src")).mkdir(parents=True)
    for name in ("train.py", "conf.yaml"):
        (folder / name).touch()
    monkeypatch.chdir(tmp_path / here)
    record = make_record(own_script=str(folder / "train.py"), place="scripts/train.py", restarts=0, max_restarts=0)
    files = runs.files_of(context.paths, record)
    files.logs.mkdir(parents=True)
    files.rank_log("node0", 0).write_text(SECOND_LIFE)
    files.plan.write_text(json.dumps({"uploads": [{"name": name, "source": str(folder / name)} for name in sent]}))
    (diagnosis,) = diagnose(context, replace(record, rank_exits=[RankExit(node="node0", rank=0, code=1, at=5.0)]))
    assert diagnosis.next.startswith(advice)


def test_advice_about_a_module_of_the_learners_names_it_as_one(context: Context) -> None:
    record = make_record(own_script="/home/me/pkg/train.py", own_module="pkg.train", place="scripts/train.py", restarts=0)
    path = runs.files_of(context.paths, record).rank_log("node0", 0)
    path.parent.mkdir(parents=True)
    path.write_text(FIRST_LIFE)
    (diagnosis,) = diagnose(context, replace(record, rank_exits=[RankExit(node="node0", rank=0, code=1, at=5.0)]))
    assert diagnosis.next.startswith("gpucourse run --module pkg.train with a smaller batch_size")


def test_planned_ranks_whose_log_is_empty_are_silent(context: Context) -> None:
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
