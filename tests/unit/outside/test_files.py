"""Files that somebody else named: only regular ones inside their folder, and nothing is waited for."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/folder").mkdir(parents=True)
    (tmp_path / "root/folder/file").write_bytes(b"content")
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "root/link").symlink_to("folder/file")
    (tmp_path / "root/way").symlink_to("folder")
    (tmp_path / "root/out").symlink_to("../outside")
    os.mkfifo(tmp_path / "root/pipe")
    return tmp_path / "root"


def test_a_plain_file_inside_is_given(root: Path) -> None:
    path = file_inside(root, "folder/file")
    assert path == root / "folder/file"
    assert read_bounded(path, 7) == b"content"


@pytest.mark.parametrize(
    "name", ["link", "way/file", "out", "pipe", "folder", "gone", "folder/file/x", "../outside", "/etc/passwd", "", "x" * 300]
)
def test_nothing_else_is_given(root: Path, name: str) -> None:
    with pytest.raises(OutsideError):
        file_inside(root, name)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["link", "pipe", "folder", "/dev/zero", "/dev/tty", "socket"])
def test_only_a_plain_file_is_read_and_nothing_waits(root: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        if name == "socket" and len(str(root)) < 90:
            sock.bind(str(root / name))
        elif name == "socket":
            pytest.skip("the folder's path is too long for a socket")
        with pytest.raises(OutsideError):
            read_bounded(root / name, 1 << 20)


def test_a_larger_file_is_refused(root: Path) -> None:
    with pytest.raises(OutsideError, match="larger than 6 bytes"):
        read_bounded(root / "folder/file", 6)
    with pytest.raises(FileNotFoundError):
        read_bounded(root / "gone", 6)


def test_a_sparse_giant_is_refused_before_it_is_read(root: Path) -> None:
    with (root / "giant").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OutsideError):
        read_bounded(root / "giant", 1 << 20)
