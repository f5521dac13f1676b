from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, NewerFormat, StorageError
from gpucourse.workspace.files import read_mapping, read_record, refuse_links, write_record


@dataclass(kw_only=True)
class Inner:
    name: str
    path: Path | None = None


@dataclass(kw_only=True)
class Note:
    version: int = 2
    text: str
    inner: list[Inner] = field(default_factory=list)


def test_write_record_writes_what_read_record_returns(tmp_path: Path) -> None:
    note = Note(text='quotes " and \n lines, ü', inner=[Inner(name="a"), Inner(name="b", path=None)])
    write_record(tmp_path / "deep" / "note.json", note)
    assert read_record(tmp_path / "deep" / "note.json", Note) == note


def test_read_record_of_an_older_file_ignores_unknown_keys(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"version": 1, "text": "hello", "since_gone": [1, 2]}')
    assert read_record(tmp_path / "old.json", Note) == Note(version=1, text="hello")


def test_read_record_refuses_a_newer_file_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "new.json"
    path.write_text('{"version": 3, "text": "from the future"}')
    with pytest.raises(NewerFormat, match="format 3") as caught:
        read_record(path, Note)
    assert "upgrade" in caught.value.hint
    assert path.read_text() == '{"version": 3, "text": "from the future"}'


@pytest.mark.parametrize("text", ["", "null", "{", "[]", '{"version": 2}', '{"text": {"a": 1}}', "\x00\xff"])
def test_read_record_names_a_damaged_file_and_keeps_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "note.json"
    path.write_text(text)
    with pytest.raises(MissingError, match=r"note\.json"):
        read_record(path, Note)
    assert path.read_text() == text


def test_read_mapping_refuses_a_newer_or_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "hints.json"
    assert read_mapping(path) == {}
    write_record(path, {"version": 1, "3.1": 2})
    assert read_mapping(path) == {"3.1": 2}
    path.write_text('{"3.1": 2}')
    assert read_mapping(path) == {"3.1": 2}, "of before there were versions"
    for text, message in (('{"version": 2, "3.1": 2}', "has format 2"), ('{"3.1"', "is damaged"), ("[1]", "is damaged")):
        path.write_text(text)
        with pytest.raises(MissingError, match=message):
            read_mapping(path)
        assert path.read_text() == text


def test_read_record_names_what_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "blocker").write_text("a file where a folder should be")
    with pytest.raises(StorageError, match="cannot read"):
        read_record(tmp_path / "blocker" / "file", Note)


def test_refuse_links_names_the_part_of_a_path_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "run" / "logs").mkdir(parents=True)
    refuse_links(tmp_path / "run" / "logs" / "a.log", tmp_path)
    (tmp_path / "run" / "outputs").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="outputs is a link, not a folder of the run"):
        refuse_links(tmp_path / "run" / "outputs" / "a", tmp_path)
