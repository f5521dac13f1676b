"""What lands in `deliverables/`: the newest good run's, whole, beside what the learner put there."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpucourse.context import Context
from gpucourse.course.locate import CourseFolders
from gpucourse.model.manifest import Exercise
from gpucourse.model.record import RunRecord
from gpucourse.model.verdict import ExerciseVerdict
from gpucourse.runs.finish import deliver, seal, seal_screen
from gpucourse.workspace import runs
from gpucourse.workspace.files import read_json, write_record
from gpucourse.workspace.locate import open_workspace

EXERCISE = Exercise.model_validate(
    {
        "id": "3.2",
        "title": "t",
        "goal": "g",
        "minutes": 1,
        "script": "s.py",
        "launch": {"kind": "torchrun"},
        "tasks": ["t"],
        "hints": ["h"],
        "deliverables": [{"title": "logs", "source": "logs/*.log"}, {"title": "metrics", "source": "metrics.json"}],
    }
)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    folders = CourseFolders(tmp_path, tmp_path, tmp_path)
    return Context(workspace=open_workspace(tmp_path / "w"), folders=folders, environ={})


def ended(context: Context, run_id: str, ranks: int, verdict: str | None = "passed", state: str = "succeeded") -> RunRecord:
    record = RunRecord(
        id=run_id,
        exercise="3.2",
        module="3",
        stack="03-local",
        mode="local",
        launcher="torchrun",
        state=state,  # type: ignore[arg-type]
        created=run_id,
        verdict=verdict,
    )
    files = runs.files_of(context.paths, record)
    files.logs.mkdir(parents=True)
    for rank in range(ranks):
        files.rank_log(f"node{rank}", rank).write_text(f"{run_id} {rank}")
    files.metrics.write_text("{}")
    write_record(files.verdict, ExerciseVerdict(exercise="3.2", run=run_id, mode="local", verdict="passed"))
    runs.save(context.paths, record)
    return record


def handed_in(context: Context) -> dict[str, str]:
    folder = context.paths.deliverables("3.2")
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.log")}


def test_a_newer_run_replaces_an_older_one_whole_and_leaves_the_learners_files(context: Context) -> None:
    deliver(context, EXERCISE, ended(context, "20260101-000000-a", ranks=3))
    (context.paths.deliverables("3.2") / "answers.yaml").write_text("mine")
    deliver(context, EXERCISE, ended(context, "20260102-000000-b", ranks=1))
    assert handed_in(context) == {"logs/node0-rank0.log": "20260102-000000-b 0"}
    assert (context.paths.deliverables("3.2") / "answers.yaml").read_text() == "mine"


def test_what_a_link_leads_to_is_neither_sealed_nor_handed_in(context: Context, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    record = ended(context, "20260101-000000-a", ranks=1)
    files = runs.files_of(context.paths, record)
    (files.logs / "planted.log").symlink_to(tmp_path / "secret")
    seal(files, "local")
    deliver(context, EXERCISE, record)
    assert "logs/planted.log" not in read_json(files.hashes)["sha256"]
    assert handed_in(context) == {"logs/node0-rank0.log": "20260101-000000-a 0"}


def test_an_older_run_that_comes_home_late_does_not_replace_a_newer_one(context: Context) -> None:
    deliver(context, EXERCISE, ended(context, "20260102-000000-b", ranks=1))
    deliver(context, EXERCISE, ended(context, "20260101-000000-a", ranks=2))
    assert handed_in(context) == {"logs/node0-rank0.log": "20260102-000000-b 0"}


@pytest.mark.parametrize(
    ("verdict", "state"), [("failed", "succeeded"), ("error", "succeeded"), (None, "succeeded"), ("passed", "failed")]
)
def test_a_run_that_is_not_good_hands_nothing_in(context: Context, verdict: str | None, state: str) -> None:
    deliver(context, EXERCISE, ended(context, "20260101-000000-a", ranks=1, verdict=verdict, state=state))
    assert handed_in(context) == {}


def test_the_seal_shows_a_later_change_and_takes_the_screen_in(context: Context) -> None:
    record = ended(context, "20260101-000000-a", ranks=1)
    files = runs.files_of(context.paths, record)
    seal(files, "local")
    first = read_json(files.hashes)["sha256"]
    assert set(first) == {"run.json", "logs/node0-rank0.log", "metrics.json", "verdict.json"}
    files.screen.write_text("<svg/>")
    seal_screen(files)
    assert set(read_json(files.hashes)["sha256"]) == {*first, "screen.svg"}
    files.metrics.write_text('{"better": true}')
    seal(files, "local")
    assert read_json(files.hashes)["sha256"]["metrics.json"] != first["metrics.json"]
