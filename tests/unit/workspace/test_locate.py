from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gpucourse.errors import NewerFormat, UsageError
from gpucourse.workspace.locate import find_root, open_workspace
from gpucourse.workspace.paths import WorkspacePaths
from tests.waiting import STUCK_S


def test_the_flag_wins_then_the_variable_then_a_parent_then_home(tmp_path: Path) -> None:
    course = tmp_path / "course"
    (course / "deep" / "er").mkdir(parents=True)
    (course / "gpucourse.yaml").touch()
    here, home = course / "deep" / "er", tmp_path / "home"
    environ = {"GPUCOURSE_WORKSPACE": str(tmp_path / "named")}
    assert find_root(Path("rel"), environ, here, home) == here / "rel"
    assert find_root(None, environ, here, home) == tmp_path / "named"
    assert find_root(None, {}, here, home) == course
    assert find_root(None, {}, tmp_path, home) == home / "gpucourse"


def test_dots_are_taken_out() -> None:
    assert find_root(Path("../x/./y"), {}, Path("/a/b"), Path("/home")) == Path("/a/x/y")


def test_a_workspace_is_made_once(tmp_path: Path) -> None:
    root = tmp_path / 'it\'s a "work" space'
    first = open_workspace(root)
    second = open_workspace(root)
    assert (first.created, second.created) == (True, False)
    assert first.id == second.id
    assert (root / "gpucourse.yaml").is_file()


def test_who_comes_at_once_finds_one_workspace(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def enter(_number: int) -> tuple[str, bool]:
        together.wait(STUCK_S)
        workspace = open_workspace(tmp_path / "new")
        return workspace.id, workspace.created

    with ThreadPoolExecutor(8) as pool:
        ids, created = zip(*pool.map(enter, range(8)), strict=True)
    assert len(set(ids)) == 1
    assert sorted(created) == [False] * 7 + [True]


def test_settings_of_the_learner_survive(tmp_path: Path) -> None:
    (tmp_path / "gpucourse.yaml").write_text("target: local\n")
    open_workspace(tmp_path)
    assert (tmp_path / "gpucourse.yaml").read_text() == "target: local\n"


def test_a_workspace_of_a_newer_version_is_refused_and_kept(tmp_path: Path) -> None:
    open_workspace(tmp_path)
    identity = WorkspacePaths(tmp_path).identity
    identity.write_text('{"version": 99, "id": "x"}')
    with pytest.raises(NewerFormat):
        open_workspace(tmp_path)
    assert identity.read_text() == '{"version": 99, "id": "x"}'


def test_where_no_folder_can_be_is_no_workspace() -> None:
    with pytest.raises(UsageError, match="no folder can be made at /proc/nowhere"):
        open_workspace(Path("/proc/nowhere"))


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file"):
        open_workspace(tmp_path / "file")
