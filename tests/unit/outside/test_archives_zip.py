"""Reading a zip on disk: its statements about names, links, sizes and counts are not trusted."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

import pytest

from gpucourse.outside.archives import ZipLimits, unpack_zip
from gpucourse.outside.names import OutsideError

LIMITS = ZipLimits(members=20, member_bytes=10_000, total_bytes=30_000)


def zip_members(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as bundle:
        for name, content in members:
            bundle.writestr(name, content)
    return file.getvalue()


def unpack(tmp_path: Path, data: bytes, limits: ZipLimits = LIMITS) -> list[str]:
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "root").mkdir()
    return unpack_zip(tmp_path / "a.zip", tmp_path / "root", limits)


def info(name: str, mode: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    return member


def patch_bytes(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


def end_changed(data: bytes, at: int, new: bytes) -> bytes:
    """Return the zip with other bytes in its last record, which has 22 bytes."""
    at += len(data) - 22
    return data[:at] + new + data[at + len(new) :]


def with_large_form(members: int) -> bytes:
    """Return a zip with the longest comment, so that the record of the large form is before the last 65,557 bytes. That record
    contains the real number of members.
    """
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, 0, *(0,) * 14)
    contents = b"".join(entry[:28] + b"\4\0" + entry[30:] + b"%04d" % number for number in range(members))
    large = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, members, members, len(contents), 0)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(contents), 1)
    return contents + large + locator + struct.pack("<4s4H2LH", b"PK\5\6", *(0,) * 6, 65535) + b"c" * 65535


def with_offset(offset: int) -> bytes:
    """Return a zip with one file that begins at `offset`, given in the field for large archives."""
    file = zip_members(("a", b"1"))
    at = file.index(b"PK\1\2")
    extra = struct.pack("<HHQ", 1, 8, offset)
    entry = file[at : at + 30] + struct.pack("<H", len(extra)) + file[at + 32 : at + 42] + b"\xff" * 4 + b"a" + extra
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(entry), at, 0)
    return file[:at] + entry + end


def test_unpack_zip_unpacks_files(tmp_path: Path) -> None:
    data = zip_members(("a/b.txt", b"b" * 5000), ("folder/", b""), ("c", b""))
    assert unpack(tmp_path, data) == ["a/b.txt", "c"]
    assert (tmp_path / "root/a/b.txt").read_bytes() == b"b" * 5000
    assert (tmp_path / "root/c").read_bytes() == b""


LIES = {
    "nothing": b"",
    "cut": zip_members(("a", b"1" * 100))[:-5],
    "a way out": zip_members(("../a", b"1")),
    "an absolute name": zip_members(("/etc/a", b"1")),
    "a backslash": zip_members(("..\\a", b"1")),
    "a link": zip_members((info("a", 0o120777), b"/etc/passwd")),
    "a device": zip_members((info("a", 0o020666), b"")),
    "the same name twice": patch_bytes(zip_members(("aaaa", b"1"), ("bbbb", b"2")), b"bbbb", b"aaaa"),
    "a file that is a folder too": zip_members(("a", b"1"), ("a/b", b"2")),
    "a large file": zip_members(("a", bytes(10_001))),
    "much in all": zip_members(*((str(number), bytes(9_000)) for number in range(4))),
    "many files": zip_members(*((str(number), b"") for number in range(21))),
    "more than it says": patch_bytes(zip_members(("a", bytes(5000))), (5000).to_bytes(4, "little"), (5).to_bytes(4, "little")),
    "another compression": zip_members(("a", b"1"), method=zipfile.ZIP_LZMA),
    "a number of files that is not true": end_changed(
        zip_members(*((str(number), b"") for number in range(21))), 8, b"\1\0\1\0"
    ),
    "a file that begins beyond the end": with_offset(1 << 40),
    "a table of contents beyond the start": end_changed(zip_members(("a", b"1")), 12, b"\xff\xff\xff\0"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lie", LIES)
def test_unpack_zip_raises_one_error_for_a_wrong_zip(tmp_path: Path, lie: str) -> None:
    with pytest.raises(OutsideError) as caught:
        unpack(tmp_path, LIES[lie])
    assert str(caught.value).isprintable()
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "root"}


def test_unpack_zip_refuses_the_large_form_before_its_table_is_read(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="ZIP64 format"):
        unpack(tmp_path, with_large_form(2))
