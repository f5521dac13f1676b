from __future__ import annotations

import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, NewerFormat, StorageError
from gpucourse.storage import write_bytes, writing
from gpucourse.workspace.files import (
    convert_record,
    copy_file,
    read_json,
    read_mapping,
    read_record,
    to_json,
    write_mapping,
    write_record,
)


@dataclass(kw_only=True)
class Inner:
    name: str
    path: Path | None = None


@dataclass(kw_only=True)
class Note:
    version: int = 2
    text: str
    inner: list[Inner] = field(default_factory=list)


@contextmanager
def small_files() -> Iterator[None]:
    """No file of this process grows beyond 4 KiB in the block: what a full disk looks like, without filling one. As a fixture
    it would hold for a file to which pytest writes as well."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    note = Note(text='quotes " and \n lines, ü', inner=[Inner(name="a"), Inner(name="b", path=None)])
    write_record(tmp_path / "deep" / "note.json", note)
    assert read_record(tmp_path / "deep" / "note.json", Note) == note


def test_no_file_is_none(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none.json", Note) is None
    assert read_json(tmp_path / "none.json") is None


def test_a_file_that_came_after_the_first_look_is_read(tmp_path: Path) -> None:
    write_record(tmp_path / "note.json", Note(text="hello"))
    assert convert_record(tmp_path / "note.json", None, Note) == Note(text="hello")


def test_an_older_file_still_loads_and_unknown_keys_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"version": 1, "text": "hello", "since_gone": [1, 2]}')
    assert read_record(tmp_path / "old.json", Note) == Note(version=1, text="hello")


def test_a_newer_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    path.write_text('{"version": 3, "text": "from the future"}')
    with pytest.raises(NewerFormat, match="format 3") as caught:
        read_record(path, Note)
    assert "upgrade" in caught.value.hint
    assert path.read_text() == '{"version": 3, "text": "from the future"}'


@pytest.mark.parametrize("text", ["", "null", "{", "[]", '{"version": 2}', '{"text": {"a": 1}}', "\x00\xff"])
def test_a_damaged_file_is_named_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "note.json"
    path.write_text(text)
    with pytest.raises(MissingError, match=r"note\.json"):
        read_record(path, Note)
    assert path.read_text() == text


def test_a_failed_write_leaves_the_old_file_and_nothing_aside(tmp_path: Path) -> None:
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


def test_a_full_disk_is_a_sentence_with_a_cure_and_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    with small_files(), pytest.raises(StorageError, match="no space left") as caught:
        write_bytes(path, b"x" * 10_000)
    assert "df -h" in caught.value.hint
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_in_the_way_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "blocker").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="blocker") as caught:
        write_bytes(tmp_path / "blocker" / "file", b"x")
    assert "move away" in caught.value.hint
    with pytest.raises(StorageError, match="cannot read"):
        read_record(tmp_path / "blocker" / "file", Note)


def test_modes(tmp_path: Path) -> None:
    write_bytes(tmp_path / "secret", b"x", mode=0o600)
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_copy_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "original").write_bytes(b"data")
    (tmp_path / "link").symlink_to(tmp_path / "original")
    copy_file(tmp_path / "link", tmp_path / "copies" / "copy")
    assert not (tmp_path / "copies" / "copy").is_symlink()
    (tmp_path / "original").write_bytes(b"changed")
    assert (tmp_path / "copies" / "copy").read_bytes() == b"data"


def test_paths_are_stored_as_text() -> None:
    assert b'"path": "a/b"' in to_json(Inner(name="x", path=Path("a/b")))


def test_names_and_values_are_versioned(tmp_path: Path) -> None:
    path = tmp_path / "hints.json"
    assert read_mapping(path) == {}
    write_mapping(path, {"3.1": 2})
    assert read_mapping(path) == {"3.1": 2}
    path.write_text('{"3.1": 2}')
    assert read_mapping(path) == {"3.1": 2}, "of before there were versions"
    for text, said in (('{"version": 2, "3.1": 2}', "has format 2"), ('{"3.1"', "is damaged"), ("[1]", "is damaged")):
        path.write_text(text)
        with pytest.raises(MissingError, match=said):
            read_mapping(path)
        assert path.read_text() == text
