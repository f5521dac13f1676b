from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from gpucourse.errors import MissingError, UsageError
from gpucourse.model.record import RefusedFile, RunRecord
from gpucourse.workspace import runs
from gpucourse.workspace.files import write_record
from gpucourse.workspace.paths import WorkspacePaths


def record(run_id: str, exercise: str = "3.2", created: str = "2026-01-01T00:00:00+00:00") -> RunRecord:
    return RunRecord(
        id=run_id, exercise=exercise, module="3", stack="03-local", mode="local", launcher="torchrun", state="running",
        created=created,
    )  # fmt: skip


@pytest.fixture
def paths(tmp_path: Path) -> WorkspacePaths:
    paths = WorkspacePaths(tmp_path)
    runs.save(paths, record("20260101-100000-otter", created="2026-01-01T10:00:00+00:00"))
    runs.save(paths, record("20260101-110000-heron", created="2026-01-01T11:00:00+00:00"))
    runs.save(paths, record("20260102-100000-otter", "3.1", created="2026-01-02T10:00:00+00:00"))
    return paths


@pytest.mark.parametrize(
    ("target", "run_id"),
    [
        (None, "20260102-100000-otter"),
        ("20260101-100000-otter", "20260101-100000-otter"),
        ("3.2/20260101-100000-otter", "20260101-100000-otter"),
        ("3.2", "20260101-110000-heron"),
        ("heron", "20260101-110000-heron"),
        ("20260102", "20260102-100000-otter"),
        ("latest", "20260102-100000-otter"),
    ],
)
def test_find_takes_any_part_that_fits_one_run(paths: WorkspacePaths, target: str | None, run_id: str) -> None:
    assert runs.find(paths, target).id == run_id
    assert runs.find(paths, "latest", "3.2").id == "20260101-110000-heron"
    with pytest.raises(UsageError, match=r"^2 has no run yet"):
        runs.find(paths, "latest", "2")


def test_find_refuses_a_part_that_fits_several(paths: WorkspacePaths) -> None:
    with pytest.raises(UsageError, match="matches 2 runs") as caught:
        runs.find(paths, "otter")
    assert "20260102-100000-otter" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "place"),
    [("train.py", "scripts/train.py"), ("my train.py", "scripts/my_train.py"), ("-x.sbatch", "scripts/_-x.sbatch"),
     (".hidden", "scripts/_.hidden"), ("a\nb.py", "scripts/a_b.py"), ("é" * 200, "scripts/" + "é" * 80)],
)  # fmt: skip
def test_script_place_is_a_folder_of_its_own(name: str, place: str) -> None:
    assert runs.script_place(Path("/elsewhere") / name) == place


def test_find_takes_a_script_by_its_name_and_not_by_an_exercise(paths: WorkspacePaths) -> None:
    own_request = replace(
        record("20260103-100000-lynx", "3.9", "2026-01-03T10:00:00+00:00"),
        own_script="/home/me/train.py",
        place="scripts/train.py",
    )
    runs.save(paths, own_request)
    assert (paths.runs / "scripts/train.py/20260103-100000-lynx/run.json").is_file()
    assert runs.find(paths, "train.py").id == own_request.id
    assert runs.every(paths)[-1].id == own_request.id
    assert [item.id for item in runs.every(paths, "scripts/train.py")] == [own_request.id]
    with pytest.raises(UsageError, match=r"3\.9 has no run yet"):
        runs.find(paths, "3.9")


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("train.py", "lynx"), ("b/train.py", "lynx"), ("a/train.py", "otter"), ("/home/me/a/train.py", "otter"),
        ("scripts/train.py", "lynx"), ("runs/scripts/train.py/20260102-100000-otter", "otter"),
    ],
)  # fmt: skip
def test_find_takes_the_script_whose_path_was_typed(paths: WorkspacePaths, target: str, word: str) -> None:
    for day, name, folder in ((2, "otter", "a"), (3, "lynx", "b")):
        own_run = record(f"2026010{day}-100000-{name}", "3.1", f"2026-01-0{day}T10:00:00+00:00")
        runs.save(paths, replace(own_run, own_script=f"/home/me/{folder}/train.py", place="scripts/train.py"))
    assert runs.find(paths, target).id.endswith(word)


def test_readable_leaves_out_a_record_that_names_another_place(paths: WorkspacePaths) -> None:
    folder = paths.runs / "scripts/train.py/20260102-100000-lynx"
    write_record(folder / "run.json", replace(record(folder.name, "3.1"), own_script="train.py", place="scripts/../3.1"))
    assert len(runs.readable(paths)[1]) == 1


def test_new_run_never_goes_back_when_the_clock_does(tmp_path: Path) -> None:
    paths = WorkspacePaths(tmp_path)
    clock = ["20260131-235959"]

    def now() -> str:
        return clock[0]

    first = runs.new_run(paths, "3.1", now)
    assert first.startswith("20260131-235959-")
    clock[0] = "20260101-000000"
    successors = [runs.new_run(paths, "3.2", now), runs.new_run(paths, "3.1", now)]
    assert [run[:15] for run in successors] == ["20260201-000000", "20260201-000001"]
    for number, run in enumerate([first, *successors]):
        runs.save(paths, record(run, created=f"2026-01-0{9 - number}T00:00:00+00:00"))
    assert [run_record.id for run_record in runs.every(paths)] == [first, *successors]
    (paths.runs / "3.1" / "99999999-999999-x").mkdir()
    assert runs.new_run(paths, "3.1", now)[:15] == "20260201-000002", "what is no time is not one"


def test_list_unfinished_has_runs_without_a_seal(paths: WorkspacePaths) -> None:
    """List the runs without reading the record of a sealed run."""
    write_record(paths.run("3.2", "20260101-100000-otter").hashes, {})
    paths.run("3.2", "20260101-100000-otter").record.write_text("not JSON")
    runs.save(paths, replace(record("20260101-110000-heron"), state="cancelled"))
    assert [run.id for run in runs.list_unfinished(paths)] == ["20260102-100000-otter"]
    assert runs.list_unfinished(paths, "02-slurm") == []


def test_find_takes_a_run_beside_others_that_cannot_be_read(paths: WorkspacePaths) -> None:
    paths.run("3.2", "20260101-100000-otter").record.write_text("not JSON")
    assert runs.find(paths, "heron").id == "20260101-110000-heron"
    with pytest.raises(MissingError, match="damaged"):
        runs.find(paths, "20260101-100000-otter")


END = {"node": "node0", "rank": 0, "code": 0, "at": 1.0}


@pytest.mark.parametrize(
    "values",
    [
        {"world_size": 10**30},
        {"world_size": -1},
        {"nodes": ["node0"] * 2000},
        {"restarts": 101},
        {"max_restarts": 101},
        {"rank_exits": [{**END, "group": 10**9}]},
        {"rank_exits": [{**END, "rank": -1}]},
        {"rank_exits": [{**END, "restart": 101}]},
        {"slurm": {"partition": "gpu", "nodes": 10**9, "gpus": 1}},
        {"slurm": {"partition": "gpu", "nodes": 1, "gpus": -1}},
    ],
)
def test_read_refuses_a_number_out_of_range(paths: WorkspacePaths, values: dict[str, object]) -> None:
    run = record("20260103-100000-otter")
    runs.save(paths, run)
    write_record(runs.files_of(paths, run).record, {**asdict(run), **values})
    with pytest.raises(MissingError, match="damaged"):
        runs.read(paths, run.folder, run.id)


def test_is_newer_compares_times_and_ids_of_a_damaged_record(paths: WorkspacePaths) -> None:
    early_run, late_run = (runs.find(paths, name) for name in ("20260101-100000-otter", "heron"))
    assert runs.is_newer(paths, late_run.id, early_run)
    assert not runs.is_newer(paths, early_run.id, late_run)
    assert not runs.is_newer(paths, "20260103-000000-gone", early_run)
    runs.files_of(paths, late_run).record.write_text("{")
    assert runs.is_newer(paths, late_run.id, early_run)


def test_list_collected_returns_sealed_runs_of_which_nothing_is_missing(paths: WorkspacePaths) -> None:
    refusals = [RefusedFile(node="node0", name="x", reason="too large")]
    changes: list[dict[str, Any]] = [
        {},
        {"collected": False},
        {"refused": refusals},
        {"stack": "04-local"},
        {"state": "running"},
    ]
    for number, change in enumerate(changes):
        ended_run = record(f"2026010{number + 3}-000000-otter")
        ended_run.state, ended_run.collected = "succeeded", True
        runs.save(paths, replace(ended_run, **change))
        runs.files_of(paths, ended_run).hashes.touch()
    assert runs.list_collected(paths, "03-local") == ["20260103-000000-otter"]
