from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpucourse.errors import ExitCode, HomeMissing, StorageError, UsageError
from gpucourse.workspace.locate import (
    absolute,
    find_entry,
    find_new_root,
    find_other,
    find_root,
    open_workspace,
    personal_cache,
)
from gpucourse.workspace.trust import config_folder, list_trusted_folders, trust
from tests.waiting import STUCK_S


def test_find_root_takes_the_flag_then_the_variable_then_a_parent_then_home(tmp_path: Path) -> None:
    course = tmp_path / "course"
    (course / "deep" / "er").mkdir(parents=True)
    (course / "gpucourse.yaml").touch()
    folder, home = course / "deep" / "er", tmp_path / "home"
    home.mkdir()
    environ_of_learner = {"HOME": str(home), "GPUCOURSE_WORKSPACE": str(tmp_path / "named")}
    unnamed = {"HOME": str(home)}
    assert find_root(Path("rel"), environ_of_learner, folder) == folder / "rel"
    assert find_root(None, environ_of_learner, folder) == tmp_path / "named"
    assert find_root(None, unnamed, folder) == course
    assert find_root(None, unnamed, tmp_path) == home / "gpucourse"
    assert find_root(Path("~/mine"), unnamed, folder) == home / "mine"


def test_find_new_root_takes_what_was_typed_then_the_variable_then_this_folder(tmp_path: Path) -> None:
    environ_of_learner = {"GPUCOURSE_WORKSPACE": str(tmp_path / "named")}
    assert find_new_root(Path("rel"), environ_of_learner, tmp_path) == tmp_path / "rel"
    assert find_new_root(None, environ_of_learner, tmp_path) == tmp_path / "named"
    assert find_new_root(None, {"GPUCOURSE_WORKSPACE": ""}, tmp_path) == tmp_path


def test_find_entry_is_empty_in_the_workspace_that_commands_already_use(tmp_path: Path) -> None:
    root, environ = tmp_path / "my course", {"HOME": str(tmp_path)}
    assert find_entry(root, environ, tmp_path) == f"cd '{root}'"
    assert find_entry(tmp_path / "gpucourse", environ, tmp_path) == ""
    root.mkdir()
    (root / "gpucourse.yaml").touch()
    assert find_entry(root, environ, root) == ""
    assert find_entry(root, {}, Path("/")) == f"cd '{root}'"
    environ["GPUCOURSE_WORKSPACE"] = str(tmp_path / "other")
    assert find_entry(root, environ, root) == f"export GPUCOURSE_WORKSPACE='{root}'"


def test_find_other_knows_the_workspace_that_other_folders_use(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert find_other(tmp_path / "course", environ) is None
    (tmp_path / "gpucourse").mkdir()
    (tmp_path / "gpucourse" / "gpucourse.yaml").touch()
    assert find_other(tmp_path / "course", environ) == tmp_path / "gpucourse"
    assert find_other(tmp_path / "gpucourse", environ) is None
    assert find_other(tmp_path / "course", environ | {"GPUCOURSE_WORKSPACE": str(tmp_path / "course")}) is None


def name_account(patch: pytest.MonkeyPatch, home: str | None) -> None:
    """Give this account that home folder. None means a user ID without an account."""

    def entry(number: int) -> SimpleNamespace:
        if home is None:
            raise KeyError(number)
        return SimpleNamespace(pw_dir=home)

    patch.setattr("pwd.getpwuid", entry)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_find_root_asks_the_account_when_home_is_not_set(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_account(monkeypatch, str(tmp_path))
    assert find_root(None, environ, Path("/")) == tmp_path / "gpucourse"
    assert personal_cache(environ) == tmp_path / ".cache" / "gpucourse"
    assert config_folder(environ) == tmp_path / ".config" / "gpucourse"


@pytest.mark.parametrize(
    ("environ", "account"),
    [
        ({}, "/"),
        ({}, None),
        ({"HOME": ""}, "/no/such/home"),
        ({"HOME": "/usr/.."}, "/root"),
        ({"HOME": "/no/such/home"}, "/root"),
        ({"HOME": "somewhere"}, "/root"),
        ({"HOME": "/etc/passwd"}, "/root"),
    ],
)
def test_find_root_without_a_home_names_the_way_out(
    environ: dict[str, str], account: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_account(monkeypatch, account)
    with pytest.raises(HomeMissing) as caught:
        find_root(None, environ, Path("/"))
    assert caught.value.exit_code == ExitCode.MISSING
    assert (
        caught.value.hint == "name a folder: gpucourse init DIR, then gpucourse --workspace DIR ..., or export HOME=/home/you"
    )
    with pytest.raises(HomeMissing, match="HOME is"):
        find_root(Path("~/mine"), environ, tmp_path)
    with pytest.raises(HomeMissing) as caught:
        personal_cache(environ)
    assert caught.value.hint == "export XDG_CACHE_HOME=DIR, or export HOME=/home/you"
    with pytest.raises(HomeMissing):
        trust(tmp_path, environ)
    assert list_trusted_folders(environ) == ()
    environ_of_learner = {**environ, "GPUCOURSE_WORKSPACE": str(tmp_path / "named")}
    assert (
        find_root(None, environ_of_learner, Path("/"))
        == find_new_root(None, environ_of_learner, Path("/"))
        == tmp_path / "named"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="a folder that takes nothing, from root either, is only there")
def test_open_workspace_names_another_way_when_home_cannot_be_written() -> None:
    root = find_root(None, {"HOME": "/sys"}, Path("/"))
    with pytest.raises(StorageError, match="not allowed to write /sys/gpucourse") as caught:
        open_workspace(root)
    assert "name it with --workspace DIR" in caught.value.hint


def test_open_workspace_refuses_the_root_of_the_computer() -> None:
    with pytest.raises(UsageError, match="belongs to the whole computer") as caught:
        open_workspace(find_new_root(None, {}, Path("/")))
    assert "gpucourse --workspace DIR" in caught.value.hint
    assert not Path("/.gpucourse").exists()


def test_open_workspace_of_many_at_once_makes_one(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def enter(_number: int) -> tuple[str, bool]:
        barrier.wait(STUCK_S)
        workspace = open_workspace(tmp_path / "new")
        return workspace.id, workspace.created

    with ThreadPoolExecutor(8) as pool:
        ids, creators = zip(*pool.map(enter, range(8)), strict=True)
    assert len(set(ids)) == 1
    assert sorted(creators) == [False] * 7 + [True]


def test_open_workspace_refuses_a_place_where_no_folder_can_be() -> None:
    with pytest.raises(UsageError, match="cannot make the folder /proc/nowhere"):
        open_workspace(Path("/proc/nowhere"))


@pytest.mark.parametrize(("path", "root"), [("../mine", "/a/mine"), ("/x/./y/../z", "/x/z"), ("../../../../etc", "/etc")])
def test_absolute_resolves_the_parents_in_a_path(path: str, root: str) -> None:
    assert absolute(Path(path), Path("/a/b")) == find_root(Path(path), {}, Path("/a/b")) == Path(root)
