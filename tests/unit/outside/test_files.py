"""Files that another person named: only regular files inside their folder are read, and no read waits."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gpucourse.course.catalog import read_module
from gpucourse.course.own_checks import read_own_checks
from gpucourse.course.quiz import read_quiz
from gpucourse.errors import MissingError, UsageError
from gpucourse.launch import neighbours, own_batch
from gpucourse.outside.files import file_inside, read_bounded
from gpucourse.outside.names import OutsideError
from gpucourse.remote import ssh
from tests.unit.remote.test_slurm_refusals import HEAD


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


def test_file_inside_returns_a_plain_file(root: Path) -> None:
    path = file_inside(root, "folder/file")
    assert path == root / "folder/file"
    assert read_bounded(path, 7) == b"content"


@pytest.mark.parametrize(
    "name", ["link", "way/file", "out", "pipe", "folder", "gone", "folder/file/x", "../outside", "/etc/passwd", "", "x" * 300]
)
def test_file_inside_refuses_anything_else(root: Path, name: str) -> None:
    with pytest.raises(OutsideError):
        file_inside(root, name)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["link", "pipe", "folder", "/dev/zero", "/dev/tty", "socket"])
def test_read_bounded_reads_only_plain_files(root: Path, name: str) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        if name == "socket" and len(str(root)) < 90:
            sock.bind(str(root / name))
        elif name == "socket":
            pytest.skip("the folder's path is too long for a socket")
        with pytest.raises(OutsideError):
            read_bounded(root / name, 1 << 20)


def test_read_bounded_refuses_a_larger_file(root: Path) -> None:
    with pytest.raises(OutsideError, match="larger than 6 B"):
        read_bounded(root / "folder/file", 6)
    with pytest.raises(FileNotFoundError):
        read_bounded(root / "gone", 6)


def lead_to(path: Path, name: str) -> Path:
    """Make `path` a link to an endless file, to a file that is too large, or to a missing one."""
    big, pipe = path.with_name("big"), path.with_name("pipe")
    if name == "big":
        with big.open("wb") as file:
            file.truncate(1 << 30)
    elif name == "pipe":
        os.mkfifo(pipe)
    path.symlink_to({"big": big, "pipe": pipe, "folder": path.parent}.get(name, Path("/dev/zero")))
    return path


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["zero", "pipe", "folder", "big"])
def test_read_named_and_read_ends_keep_to_bounds(tmp_path: Path, name: str) -> None:
    modules = tmp_path / "modules"
    (modules / "01-first").mkdir(parents=True)
    path = lead_to(tmp_path / "named", name)
    (modules / "01-first" / "module.yaml").symlink_to(path)
    (modules / "quiz.yaml").symlink_to(path)
    for read in (
        lambda: read_own_checks(path),
        lambda: own_batch.read(path),
        lambda: read_module(modules / "01-first", tmp_path),
        lambda: read_quiz(modules),
    ):
        with pytest.raises(UsageError, match=r"plain file|larger than"):
            read()
    kind = own_batch.read_kind(path)
    assert (kind.is_batch, kind.is_shell) == (False, False)
    assert neighbours.find_imports(path) == []
    if name in {"zero", "pipe"}:
        with pytest.raises(UsageError, match="neither a file nor a folder"):
            neighbours.find_named_files((path,), tmp_path)
    with pytest.raises(MissingError, match=r"plain file|larger than"):
        ssh.SshTransport(path).connect(HEAD)
