from __future__ import annotations

import errno
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from gpucourse.errors import HomeMissing, StorageError
from gpucourse.storage import DiskSpace, FileBatch, find_home, find_login, find_shortage, storage_error, write_bytes, writing


@contextmanager
def small_files() -> Iterator[None]:
    """Limit every file of this process to 4 KiB in the block, which has the effect of a full disk. As a fixture, it would also
    limit files that pytest writes.
    """
    old_limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, old_limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limits)


def test_writing_leaves_the_old_file_when_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail() -> None:
        with writing(path) as file:
            file.write(b"half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_write_bytes_keeps_the_old_file_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with small_files(), pytest.raises(StorageError, match="no space left") as caught:
        write_bytes(path, b"x" * 10_000)
    assert "df -h" in caught.value.hint
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_write_bytes_names_what_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "blocker").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="blocker") as caught:
        write_bytes(tmp_path / "blocker" / "file", b"x")
    assert "move away" in caught.value.hint


def test_file_batch_gives_no_name_before_its_commit(tmp_path: Path) -> None:
    batch, target, second_target = FileBatch(tmp_path / "aside"), tmp_path / "a.json", tmp_path / "b.json"
    batch.write(str(target), [b"he", b"llo"])
    batch.write(str(second_target), [b"more"])
    assert not target.exists()
    assert batch.commit() == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]
    assert (target.read_bytes(), second_target.read_bytes()) == (b"hello", b"more")


RESERVE = 256 << 20


def fill_disk(monkeypatch: pytest.MonkeyPatch, folder: Path, *, free: int) -> None:
    usage = shutil.disk_usage(folder)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: usage)


def test_keep_free_counts_what_others_are_about_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_disk(monkeypatch, tmp_path, free=RESERVE + 150)
    space = DiskSpace()
    with space.keep_free(tmp_path, 100):
        with pytest.raises(StorageError, match=r"100 B more would leave less than 256\.0 MiB free"):
            space.keep_free(tmp_path, 100).__enter__()
        with space.keep_free(tmp_path, 50):
            pass
    with space.keep_free(tmp_path, 150):
        pass


@pytest.mark.parametrize(("free", "short"), [(RESERVE - 1, True), (RESERVE, False)])
def test_find_shortage_names_a_disk_that_is_nearly_full(
    free: int, short: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch, tmp_path, free=free)
    text = f"the disk of {tmp_path} has 256.0 MiB free: outputs are collected only while at least 256.0 MiB is free"
    assert find_shortage(tmp_path) == (text if short else "")


def test_find_home_takes_the_folder_of_home_and_refuses_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_home({"HOME": str(tmp_path)}, "type --workspace DIR") == tmp_path
    monkeypatch.setattr("pwd.getpwuid", lambda _number: SimpleNamespace(pw_dir=str(tmp_path)))
    assert find_home({}, "type --workspace DIR") == tmp_path
    with pytest.raises(HomeMissing, match="HOME is /: your files cannot be kept there") as caught:
        find_home({"HOME": "/"}, "type --workspace DIR")
    assert caught.value.hint == "type --workspace DIR, or export HOME=/home/you"


def test_find_login_of_a_number_without_an_account_is_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert find_login() == "ada"
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 123456)
    assert find_login() == "123456"


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "no space left"), (errno.EROFS, "not allowed"), (errno.ENOTDIR, "cannot write"), (errno.EIO, None)],
)
def test_storage_error_explains_what_a_disk_refuses(code: int, words: str | None) -> None:
    error = storage_error(OSError(code, "reason"), Path("/a/b"))
    assert (error is None) if words is None else (error is not None and error.what.startswith(words))
