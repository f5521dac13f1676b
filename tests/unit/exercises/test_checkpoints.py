"""6.4's folders: which are whole checkpoints, what their metadata says, and a folder that not every node sees."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.parts import needs_module
from tests.unit.exercises.scripts import beside_the_script

pytestmark = needs_module("torch")
FOLDER = "06-training-at-scale"


@pytest.fixture(scope="module")
def checkpoints() -> ModuleType:
    return beside_the_script(FOLDER, "checkpoints")


@pytest.fixture(scope="module")
def contents() -> ModuleType:
    return beside_the_script(FOLDER, "checkpoint_contents")


@pytest.fixture(scope="module")
def checkpoint(checkpoints: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkpoint of one process: a matrix, its moments, a number."""
    import torch
    import torch.distributed.checkpoint as dcp

    folder: Path = checkpoints.choose_folder(tmp_path_factory.mktemp("checkpoints"), 6)
    state = {"model": {"weight": torch.ones(64, 32)}, "optimizer": {"weight": {"exp_avg": torch.zeros(64, 32)}}, "step": 6}
    with pytest.warns(UserWarning, match="save in a single process"):
        dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


def test_find_gap_of_a_whole_checkpoint_is_empty(checkpoints: ModuleType, checkpoint: Path) -> None:
    assert checkpoint.name == "step_000006"
    assert checkpoints.find_gap(checkpoint) == ""
    assert checkpoints.list_whole(checkpoint.parent) == [checkpoint]


def cut_metadata(folder: Path) -> None:
    (folder / ".metadata").write_bytes((folder / ".metadata").read_bytes()[:100])


def cut_file(folder: Path) -> None:
    file = folder / "__0_0.distcp"
    file.write_bytes(file.read_bytes()[:100])


DAMAGES: dict[str, tuple[Any, str]] = {
    "a save that was cut off": (lambda folder: (folder / ".metadata").unlink(), "it has no .metadata"),
    "a copy that was cut off": (cut_file, "__0_0.distcp has 100 of "),
    "a file that is gone": (lambda folder: (folder / "__0_0.distcp").unlink(), "__0_0.distcp is missing"),
    "metadata that was cut off": (cut_metadata, "its .metadata cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_find_gap_names_what_a_damaged_checkpoint_lacks(
    checkpoints: ModuleType, checkpoint: Path, tmp_path: Path, damage: str
) -> None:
    harm, words = DAMAGES[damage]
    copy = checkpoints.choose_folder(tmp_path, 7)
    shutil.copytree(checkpoint, copy)
    harm(copy)
    assert checkpoints.find_gap(copy).startswith(words)
    assert checkpoints.list_whole(tmp_path) == []


def test_list_whole_orders_steps_as_numbers_and_leaves_other_names_out(
    checkpoints: ModuleType, checkpoint: Path, tmp_path: Path
) -> None:
    for name in ("step_1000", "step_900", "step_new", "weights-only"):
        shutil.copytree(checkpoint, tmp_path / name)
    assert [folder.name for folder in checkpoints.list_whole(tmp_path)] == ["step_900", "step_1000"]
    assert checkpoints.list_whole(tmp_path / "nothing") == []


def test_checkpoint_contents_say_what_is_there_and_where(
    checkpoints: ModuleType, contents: ModuleType, checkpoint: Path
) -> None:
    metadata = checkpoints.read_metadata(checkpoint)
    assert contents.list_missing(metadata) == ["generator"]
    assert contents.sum_tensor_bytes(metadata) == 2 * 4 * 64 * 32
    (whole,) = contents.list_slices(metadata, "model.weight")
    assert (whole["rows"], whole["file"]) == ("0 to 63", "__0_0.distcp")
    assert contents.list_slices(metadata, "model.bias") == []
    assert [row["file"] for row in contents.list_files(metadata, checkpoint)] == ["__0_0.distcp", ".metadata"]


def test_check_root_says_what_to_set_if_the_folder_is_not_shared(checkpoints: ModuleType, tmp_path: Path) -> None:
    root, word, problem = checkpoints._make_root(tmp_path)
    assert problem is None
    elsewhere = checkpoints._check_root(tmp_path / "on another node", word, "")
    assert "this node does not see them: that folder is not shared" in elsewhere
    assert "--set folder=/shared" in elsewhere
    stale = checkpoints._check_root(Path(root), "another word", "/data")
    assert "the folder you set, /data, is not shared" in stale


def test_make_root_makes_a_folder_for_each_run(
    checkpoints: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("GPUCOURSE_RUN_ID", ""), ("SLURM_JOB_ID", "17")):
        monkeypatch.setenv(name, value)
    assert checkpoints._make_root(tmp_path)[0] == str(tmp_path / "checkpoints-17")
    monkeypatch.setenv("GPUCOURSE_RUN_ID", "20260101-120000-heron")
    assert checkpoints._make_root(tmp_path)[0] == str(tmp_path / "checkpoints-20260101-120000-heron")


def read_each_row(slices: list[dict[str, Any]], wanted: dict[str, Any]) -> list[dict[str, Any]]:
    rows, columns = wanted["size"]
    first = wanted["offset"][0]
    return [{"file": slices[0]["file"], "from": (first + row, 0), "to": (row, 0), "size": (1, columns)} for row in range(rows)]


@pytest.mark.parametrize(
    ("plan_reads", "expected"),
    [
        (read_each_row, "right"),
        (lambda slices, wanted: read_each_row(slices, wanted)[1:], "rank 0 of 2 does not get rows 0 to 31, each number once"),
        (lambda slices, wanted: 2 * read_each_row(slices, wanted), "rank 0 of 2 does not get rows 0 to 31, each number once"),
        (lambda _slices, _wanted: [{"file": "none"}], "KeyError for rank 0 of 2: 'to'"),
    ],
)
def test_read_as_planned_says_which_rank_does_not_get_its_rows(
    checkpoints: ModuleType,
    contents: ModuleType,
    checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan_reads: Any,
    expected: str,
) -> None:
    monkeypatch.setitem(sys.modules, "my_checkpoint", SimpleNamespace(plan_reads=plan_reads))
    metadata = checkpoints.read_metadata(checkpoint)
    rows, result = contents.read_as_planned(metadata, checkpoint, "model.weight", [2, 3])
    assert result == expected
    assert len(rows) == (0 if "KeyError" in expected else 5)
    assert contents.read_as_planned(metadata, checkpoint, "model.other", [2]) == ([], None)
